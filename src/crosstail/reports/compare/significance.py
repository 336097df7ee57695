"""Which differences between methods are more than noise: paired tests on the test samples that they share."""

from collections.abc import Sequence
from statistics import NormalDist
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.criterion import Metric, scale, sign
from crosstail.metrics import Difference, View, paired_difference
from crosstail.metrics._comparisons import holm
from crosstail.metrics.pair_metrics import standard_error
from crosstail.reports.compare.measured import Z
from crosstail.reports.compare.method_runs import ACCURACY, MethodRun, method_runs
from crosstail.reports.wording import several
from crosstail.sweeps.race import over_seeds
from crosstail.training.folder import RunFolder
from crosstail.training.predictions import Predictions

LEVEL = 0.05
HOLM = "p-values corrected for the number of methods by Holm's method"
Answers = tuple[NDArray[np.bool_], NDArray[np.int64]]
Answered = Sequence[tuple[MethodRun, Answers | None]]


def how(metric: Metric) -> str:
    """How differences in a metric are tested."""
    test = "permutation test" if metric == ACCURACY else "test by the influence of each sample"
    return f"paired {test} on the test samples, {HOLM}"


def significance_table(chosen: pd.DataFrame, reference: str | None = None, metric: Metric = ACCURACY) -> pd.DataFrame:
    """One row per data set and method: its difference in points from the `reference`, or from the best method.

    By paired tests on the test samples; `adjusted` are Holm's p-values for all methods on a data set. The test is NaN
    unless every run has stored its predictions. Interval and p-value are those of the trained models on other
    test samples. With dg, seeds are tested on different samples: the interval covers those of all seeds.
    """
    found, _ = method_runs(chosen, metric)
    rows, factor = [], scale(metric)
    for data in dict.fromkeys(one.data for one in found):
        methods: dict[str, list[MethodRun]] = {}
        for one in found:
            if one.data == data:
                methods.setdefault(one.method, []).append(one)
        means = {method: float(np.mean([one.ranked_by for one in own])) for method, own in methods.items()}
        ranked = sorted(means, key=lambda method: -sign(metric) * means[method])
        against = reference if reference in means else ranked[0]
        others = [method for method in ranked if method != against]
        # Enough draws for a p-value that is small after the correction.
        draws = max(1000, 200 * len(others))
        if metric == ACCURACY:
            known = {method: [(one, answers(one)) for one in own] for method, own in methods.items()}
            tests = [_difference(known[method], known[against], draws) for method in others]
        else:
            tests = [_measured_difference(methods[method], methods[against]) for method in others]
        adjusted = holm([test.p_value if test else np.nan for test in tests])
        for method, test, p in zip(others, tests, adjusted, strict=True):
            ends = (factor * test.low, factor * test.high, test.p_value) if test else (np.nan,) * 3
            rows.append([data, method, against, factor * (means[method] - means[against]), *ends, p])
    columns = ["data", "method", "against", "difference", "low", "high", "p", "adjusted"]
    return pd.DataFrame(rows, columns=columns)


def verdict(tests: pd.DataFrame, metric: Metric = ACCURACY) -> str:
    """Result of the tests on one data set, in one or two sentences."""
    against, known = tests["against"].iloc[0], tests[tests["adjusted"].notna()]
    if known.empty:
        return "There is no significance test: predictions are missing, or of different samples."
    sure = known[known["adjusted"] < LEVEL]
    gain = sign(metric) * sure["difference"]
    worse, better = int((gain < 0).sum()), int((gain > 0).sum())
    parts = [f"{worse} significantly worse", *[f"{better} significantly better"] * (better > 0)]
    parts.append(f"{len(known) - len(sure)} not significantly different")
    untested = f" {len(tests) - len(known)} could not be tested." if len(known) < len(tests) else ""
    return f"Against {against}: of {several(len(known), 'other method')}, {', '.join(parts)} ({how(metric)}).{untested}"


def _difference(first: Answered, second: Answered, draws: int) -> Difference | None:
    """Paired difference of two methods; None if predictions are missing or of different samples."""
    dg = first[0][0].dg
    by_seed = [([one], [other]) for one in first for other in second if one[0].seed == other[0].seed]
    found = []
    for pair in by_seed if dg else [(first, second)]:
        known = [own for side in pair for _, own in side if own is not None]
        if len(known) < sum(map(len, pair)) or any(not np.array_equal(truth, known[0][1]) for _, truth in known):
            return None
        a, b = (np.stack([own[0] for _, own in side if own]) for side in pair)
        of: View = "average" if dg else "pair_average"
        found.append(paired_difference(a, b, **truth_of(first[0][0], known[0]), of=of, resamples=draws))
    return over_seeds(found) if found else None


def _measured_difference(first: Sequence[MethodRun], second: Sequence[MethodRun]) -> Difference | None:
    """The same for a metric of probabilities: a normal test of the sum of the differences between influences."""
    by_seed = [([one], [other]) for one in first for other in second if one.seed == other.seed]
    found = []
    for pair in by_seed if first[0].dg else [(first, second)]:
        sides = [[one.measured for one in side] for side in pair]
        samples = sides[0][0].samples
        if any(not np.array_equal(of.samples, samples) for side in sides for of in side):
            return None
        influence = [np.mean([of.of.influence[0] for of in side], axis=0) for side in sides]
        error = standard_error(influence[0] - influence[1], sides[0][0].group)
        means = [np.mean([one.ranked_by for one in side]) for side in pair]
        estimate = float(means[0] - means[1])
        p = 2 * NormalDist().cdf(-abs(estimate) / error) if error > 0 else float(estimate == 0)
        found.append(Difference(estimate, estimate - Z * error, estimate + Z * error, p))
    return over_seeds(found) if found else None


def answers(one: MethodRun) -> Answers | None:
    """Which test samples are classified correctly (N,), their class, domain and group (3, N), if these are stored.

    Without groups every sample is one of its own.
    """
    stored = [Predictions.load(RunFolder(fold.folder)) for fold in one.folds]
    parts = [part for part in stored if part is not None]
    if len(parts) < len(stored):
        return None
    y, domain = (np.concatenate([getattr(part, name) for part in parts]).astype(np.int64) for name in ("y", "domain"))
    told = [part.known if one.known and part.known is not None else part.predicted for part in parts]
    groups = [part.group.astype(np.int64) for part in parts if part.group is not None]
    return np.concatenate(told) == y, np.stack([y, domain, np.concatenate(groups) if groups else np.arange(len(y))])


def truth_of(one: MethodRun, of: Answers) -> dict[str, Any]:
    """The arguments of a paired test that do not depend on the models."""
    y, domain, group = of[1]
    sizes = zip(("num_domains", "num_classes"), one.folds[0].counts.shape, strict=True)
    return {"y": y, "domain": domain, "group": group, **dict(sizes)}
