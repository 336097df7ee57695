"""Losses for multi-domain long-tailed recognition: pure functions of torch and thin Modules around them.

`tails`, `domains` and `contrastive` have the losses of the other algorithms.
"""

from crosstail.losses.boda import BoDALoss, boda_loss, rescaled_boda_loss
from crosstail.losses.distances import LowRankPrecision, pair_distances
from crosstail.losses.pooling import pooled_means
from crosstail.losses.statistics import PairStatistics

__all__ = [
    "BoDALoss",
    "LowRankPrecision",
    "PairStatistics",
    "boda_loss",
    "pair_distances",
    "pooled_means",
    "rescaled_boda_loss",
]
