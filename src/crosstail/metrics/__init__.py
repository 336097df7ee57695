"""Accuracy per (domain, class) pair: averages, worst cases, shot groups, and confidence intervals."""

from crosstail.metrics.intervals import Difference, average_interval, mean_interval, paired_difference, wilson
from crosstail.metrics.pairs import FEW_TESTS, SHOTS, PairAccuracy, group_squares, shot_group
from crosstail.metrics.views import View

__all__ = [
    "FEW_TESTS",
    "SHOTS",
    "Difference",
    "PairAccuracy",
    "View",
    "average_interval",
    "group_squares",
    "mean_interval",
    "paired_difference",
    "shot_group",
    "wilson",
]
