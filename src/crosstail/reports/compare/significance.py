"""Which differences between methods are more than noise: `compare_methods` on the test samples that they share."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosstail import discovery
from crosstail.metrics import LEVEL, Metric, compare_methods, find, score
from crosstail.reports.compare.method_runs import MethodRun, by_method
from crosstail.reports.wording import several
from crosstail.sweeps.cost import cost

HOLM = "p-values corrected for the number of methods by Holm's method"
AGAIN, THESE = "the methods, trained again", "these models"
"""What a difference is about: other seeds and test samples, or other test samples only."""
SEARCHED = "The search for hyperparameters is taken as given: another search could choose others."


def how(tests: pd.DataFrame) -> str:
    """How the differences in a table were tested."""
    over = {AGAIN: "seeds and test samples", THESE: "test samples"}
    kinds = " or ".join(over[about] for about in over if about in set(tests["about"]))
    return f"t test over {kinds}, {HOLM}"


def significance_table(found: Sequence[MethodRun], reference: str | None = None) -> pd.DataFrame:
    """One row per data set and method: its difference in points from the `reference`, or from the best on validation.

    `adjusted` are Holm's p-values for all methods on a data set; `about` is what the difference is about; `same` are
    methods that are right on the same samples as the reference. There is no test unless every run has stored its
    predictions, and no row where nothing shows which method is best.
    """
    metric = find(found[0].metric)
    rows: list[list[Any]] = []
    for data in dict.fromkeys(one.data for one in found):
        methods = by_method(found, data)
        means = {method: float(np.mean([one.ranked_by or 0.0 for one in own])) for method, own in methods.items()}
        against = reference if reference in methods else best_on_validation(methods)
        if against is None or len(methods) < 2:
            continue
        own = methods[against][0]
        tests = compare_methods(methods, against, own.ranked_view, paired=own.dg)
        for method, test in sorted(tests.items(), key=lambda item: -metric.sign * means[item[0]]):
            ends = [metric.scale * test.low, metric.scale * test.high, test.p_value] if test else [np.nan] * 3
            about = [test.adjusted, AGAIN if test.retrained else THESE, test.same] if test else [np.nan, "", False]
            rows.append([data, method, against, metric.scale * (means[method] - means[against]), *ends, *about])
    columns = ["data", "method", "against", "difference", "low", "high", "p", "adjusted", "about", "same"]
    return pd.DataFrame(rows, columns=columns).astype({"p": float, "adjusted": float})


def best_on_validation(methods: dict[str, list[MethodRun]]) -> str | None:
    """The method that a race would rank first; None without validation samples."""
    runs = {method: [run for one in own for run in one.runs] for method, own in methods.items()}
    if any(run.validation is None for own in runs.values() for run in own):
        return None

    def rank(method: str) -> tuple[float, Any, str]:
        spec = runs[method][0].spec
        on, own = spec.selected_on, [run.selected_by for run in runs[method]]
        judged = float(np.mean([score(by[on], by["pair_average"], on) for by in own]))
        # A user's file is not imported by a report, and counts as costly.
        return -round(judged, 9), (1,) if discovery.own_files(spec.method) else (0, cost(spec.method)), method

    return min(methods, key=rank)


def verdict(tests: pd.DataFrame, metric: Metric) -> str:
    """Result of the tests on one data set, in a few sentences."""
    against, known = tests["against"].iloc[0], tests[tests["adjusted"].notna()]
    if known.empty:
        return "There is no significance test: predictions are missing, or of different samples."
    said = []
    for about in (AGAIN, THESE):
        own = known[known["about"] == about]
        if len(own):
            better, worse = counted(own, metric)
            same = int(own["same"].sum())
            level = len(own) - better - worse - same
            kinds = {"significantly worse": worse, "significantly better": better, "not significantly different": level}
            kinds["right on the same test samples"] = same
            found = [f"{number} {kind}" for kind, number in kinds.items() if number]
            among = f"no significant difference to {several(level, 'other method')}"
            said.append(f"{about}: {among if level == len(own) else ', '.join(found)}")
    untested = f" {len(tests) - len(known)} could not be tested." if len(known) < len(tests) else ""
    return f"Against {against}, {'; '.join(said)} ({how(known)}).{untested}"


def counted(tests: pd.DataFrame, metric: Metric) -> tuple[int, int]:
    """How many methods are significantly better than the one that they are tested against, and how many worse."""
    gain = metric.sign * tests[tests["adjusted"] < LEVEL]["difference"]
    return int((gain > 0).sum()), int((gain < 0).sum())
