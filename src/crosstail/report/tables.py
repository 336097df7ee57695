"""Data first: what the figures show, as tables."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

Result = dict[str, Any]

METRICS = {
    "pair average": ("test", "pair_average"),
    "average": ("test", "average"),
    "worst domain": ("test", "worst_domain"),
    "many": ("test", "shots", "many"),
    "medium": ("test", "shots", "medium"),
    "few": ("test", "shots", "few"),
    "zero": ("test", "shots", "zero"),
    "worst pair": ("test", "worst_pair"),
    "α": ("transferability", "alpha"),
    "β": ("transferability", "beta"),
    "γ": ("transferability", "gamma"),
}
"""What is reported of a run, and where its result.json has it."""

LOWER_IS_BETTER = {"α"}


def _value(result: Result, metric: str) -> float:
    """A figure of a result, accuracies in per cent, nan where there is none."""
    found: Any = result
    for key in METRICS[metric]:
        found = found[key]
    scale = 1.0 if METRICS[metric][0] == "transferability" else 100.0
    return float("nan") if found is None else scale * float(found)


def summary_table(runs: Mapping[str, Sequence[Result]], baseline: str) -> pd.DataFrame:
    """One row per method and metric: mean and standard deviation over seeds, and the same of the gain.

    The gain is over the baseline's run of the same seed, so its spread is that of the difference.
    """
    rows = []
    base = {r["spec"]["seed"]: r for r in runs[baseline]}
    for method, results in runs.items():
        for metric in METRICS:
            values = np.array([_value(r, metric) for r in results])
            gains = np.array([_value(r, metric) - _value(base[r["spec"]["seed"]], metric) for r in results])
            rows.append((method, metric, len(values), values.mean(), _std(values), gains.mean(), _std(gains)))
    columns = ["method", "metric", "runs", "mean", "std", "gain", "gain_std"]
    return pd.DataFrame(rows, columns=columns)


def _std(values: np.ndarray[Any, np.dtype[np.float64]]) -> float:
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def label_table(counts: ArrayLike, domains: Sequence[str], classes: Sequence[str]) -> pd.DataFrame:
    """One row per pair: domain, class, count."""
    table = np.asarray(counts)
    return pd.DataFrame(
        {
            "domain": np.repeat(domains, table.shape[1]),
            "class": np.tile(classes, table.shape[0]),
            "count": table.ravel(),
        }
    )


def gain_table(baseline: Sequence[Result], others: Sequence[Result]) -> pd.DataFrame:
    """One row per pair: its training count and the mean gain in test accuracy, in points."""
    accuracy = [
        np.mean([np.divide(r["test"]["hits"], np.maximum(r["test"]["totals"], 1)) for r in runs], axis=0)
        for runs in (baseline, others)
    ]
    first = baseline[0]
    table = label_table(first["counts"], first["domains"], first["classes"])
    tested = np.asarray(first["test"]["totals"]).ravel() > 0
    table["gain"] = np.where(tested, 100 * (accuracy[1] - accuracy[0]).ravel(), np.nan)
    return table


def curve_table(records: Mapping[str, Sequence[Sequence[dict[str, Any]]]]) -> pd.DataFrame:
    """One row per method and evaluation: mean, lowest and highest validation pair average over the seeds."""
    rows = [
        (method, record["stage"], record["step"], 100 * (record["validation"]["pair_average"] or 0.0))
        for method, runs in records.items()
        for run in runs
        for record in run
    ]
    frame = pd.DataFrame(rows, columns=["method", "stage", "step", "accuracy"])
    grouped = frame.groupby(["method", "stage", "step"], sort=False)["accuracy"]
    return grouped.agg(["mean", "min", "max"]).reset_index()
