"""Accuracy per (domain, class) pair: averages, worst cases, shot groups, and confidence intervals."""

from crosstail.metrics.intervals import Difference, paired_difference, wilson
from crosstail.metrics.pairs import SHOTS, PairAccuracy, shot_group
from crosstail.metrics.views import View

__all__ = ["SHOTS", "Difference", "PairAccuracy", "View", "paired_difference", "shot_group", "wilson"]
