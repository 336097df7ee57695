"""Metrics of every (domain, class) pair: averages, worst cases, shot groups, and confidence intervals.

One file for each metric; the file name is its name on the command line.
"""

from typing import TYPE_CHECKING

from crosstail import discovery

if TYPE_CHECKING:  # importing SciPy takes time, and most names need none of it
    from crosstail.metrics._answers import Answers
    from crosstail.metrics._groups import group_metrics
    from crosstail.metrics._intervals import average_interval, mean_interval, wilson
    from crosstail.metrics._methods import LEVEL, Answered, Difference, Models, compare_methods, difference
    from crosstail.metrics._metric import DEFAULT, PACKAGE, VIEWS, Metric, criteria, find, names, score, value_on
    from crosstail.metrics._pairs import PairAccuracy, group_squares
    from crosstail.metrics._values import (
        FEW_TESTS,
        SHOTS,
        Computed,
        PairValues,
        SampleValues,
        by_class,
        by_group,
        by_sample,
        means,
        root_sum,
        shot_group,
    )
    from crosstail.metrics._views import View, Weighting
else:
    __getattr__, __dir__ = discovery.lazily(__file__)

__all__ = [
    "DEFAULT", "FEW_TESTS", "LEVEL", "PACKAGE", "SHOTS", "VIEWS", "Answered", "Answers", "Computed",
    "Difference", "Metric", "Models", "PairAccuracy", "PairValues", "SampleValues", "View", "Weighting",
    "average_interval", "by_class", "by_group", "by_sample", "compare_methods", "criteria", "difference",
    "find", "group_metrics", "group_squares", "mean_interval", "means", "names", "root_sum", "score",
    "shot_group", "value_on", "wilson",
]  # fmt: skip
