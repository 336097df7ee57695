"""Transferability between (domain, class) pairs: the graph, its statistics α, β, γ, the two bounds, a 2-D layout."""

from crosstail.losses.statistics import PairStatistics
from crosstail.transfer.bounds import boda_lower_bound
from crosstail.transfer.graph import TransferabilityGraph
from crosstail.transfer.statistics import TransferStatistics

__all__ = ["PairStatistics", "TransferStatistics", "TransferabilityGraph", "boda_lower_bound"]
