"""How well (domain, class) pairs transfer to each other: the graph, α β γ, the two bounds, a 2-D picture."""

from crosstail.losses.statistics import PairStatistics
from crosstail.transfer.bounds import boda_lower_bound
from crosstail.transfer.graph import TransferabilityGraph, TransferStatistics

__all__ = ["PairStatistics", "TransferStatistics", "TransferabilityGraph", "boda_lower_bound"]
