"""Which differences between methods are more than noise: paired tests on the test samples that they share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosstail.metrics import Difference, Metric, by_influence, find
from crosstail.metrics._comparisons import holm
from crosstail.reports.compare.method_runs import MethodRun
from crosstail.reports.wording import several
from crosstail.sweeps.race import over_seeds

LEVEL = 0.05
HOLM = "p-values corrected for the number of methods by Holm's method"


def how(metric: Metric) -> str:
    """How differences in a metric are tested."""
    test = "permutation test" if metric.differ else "test by the influence of each sample"
    return f"paired {test} on the test samples, {HOLM}"


def significance_table(found: Sequence[MethodRun], reference: str | None = None) -> pd.DataFrame:
    """One row per data set and method: its difference in points from the `reference`, or from the best method.

    By paired tests on the test samples; `adjusted` are Holm's p-values for all methods on a data set. The test is NaN
    unless every run has stored its predictions. Interval and p-value are about the trained models on other
    test samples. With dg, seeds are tested on different samples: the interval covers all of them.
    """
    metric = find(found[0].metric)
    rows: list[list[Any]] = []
    for data in dict.fromkeys(one.data for one in found):
        methods: dict[str, list[MethodRun]] = {}
        for one in found:
            if one.data == data:
                methods.setdefault(one.method, []).append(one)
        means = {method: float(np.mean([one.ranked_by or 0.0 for one in own])) for method, own in methods.items()}
        ranked = sorted(means, key=lambda method: -metric.sign * means[method])
        against = reference if reference in means else ranked[0]
        others = [method for method in ranked if method != against]
        # Enough draws for a p-value that is small after the correction.
        draws = max(1000, 200 * len(others))
        tests = [_difference(methods[method], methods[against], draws) for method in others]
        adjusted = holm([test.p_value if test else np.nan for test in tests])
        for method, test, p in zip(others, tests, adjusted, strict=True):
            ends = (metric.scale * test.low, metric.scale * test.high, test.p_value) if test else (np.nan,) * 3
            rows.append([data, method, against, metric.scale * (means[method] - means[against]), *ends, p])
    columns = ["data", "method", "against", "difference", "low", "high", "p", "adjusted"]
    return pd.DataFrame(rows, columns=columns)


def verdict(tests: pd.DataFrame, metric: Metric) -> str:
    """Result of the tests on one data set, in one or two sentences."""
    against, known = tests["against"].iloc[0], tests[tests["adjusted"].notna()]
    if known.empty:
        return "There is no significance test: predictions are missing, or of different samples."
    sure = known[known["adjusted"] < LEVEL]
    gain = metric.sign * sure["difference"]
    worse, better = int((gain < 0).sum()), int((gain > 0).sum())
    parts = [f"{worse} significantly worse", *[f"{better} significantly better"] * (better > 0)]
    parts.append(f"{len(known) - len(sure)} not significantly different")
    untested = f" {len(tests) - len(known)} could not be tested." if len(known) < len(tests) else ""
    others = several(len(known), "other method")
    return f"Against {against}: of {others}, {', '.join(parts)} ({how(metric)}).{untested}"


def _difference(first: Sequence[MethodRun], second: Sequence[MethodRun], draws: int) -> Difference | None:
    """Paired difference of two methods; None if answers are missing or of different samples."""
    differ = find(first[0].metric).differ or by_influence
    by_seed = [([one], [other]) for one in first for other in second if one.seed == other.seed]
    found = [differ(*pair, first[0].ranked_view, draws) for pair in (by_seed if first[0].dg else [(first, second)])]
    known = [difference for difference in found if difference is not None]
    return over_seeds(known) if known and len(known) == len(found) else None
