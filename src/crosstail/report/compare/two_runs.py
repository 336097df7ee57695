"""Two runs on the same test samples: overall and pair by pair."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from crosstail.data import shot_thresholds
from crosstail.metrics import SHOTS, Difference, View, paired_difference, shot_group
from crosstail.metrics.comparisons import pair_differences
from crosstail.report.compare.method_runs import MethodRun, method_runs
from crosstail.report.compare.read_runs import read_runs
from crosstail.report.compare.significance import LEVEL, answers, truth_of
from crosstail.report.tables import label_table
from crosstail.report.wording import TRACKS

OF_SPLIT = (
    "dataset",
    "labels",
    "columns",
    "group_by",
    "skip_broken",
    "protocol",
    "unseen",
    "folds",
    "fold",
    "data_seed",
)
"""Fields that decide which samples are tested."""


@dataclass(frozen=True)
class Metric:
    """One accuracy of both runs, between 0 and 1, and the first minus the second."""

    name: str
    first: float
    second: float
    difference: Difference


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two runs have in common and where they differ; the first metric is what methods are ranked by."""

    names: tuple[str, str]
    data: str
    dg: bool
    samples: int
    metrics: Sequence[Metric]
    pairs: pd.DataFrame
    """One row per tested pair: domain, class, count, tested, accuracies and difference in %, its interval, p-values.

    `adjusted` is p, corrected for the number of pairs."""

    @property
    def sure(self) -> pd.DataFrame:
        """The pairs that differ significantly after the correction."""
        return self.pairs[self.pairs["adjusted"] < LEVEL]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; accuracies between 0 and 1."""
        shares = ("first", "second", "difference", "low", "high")
        pairs = self.pairs.assign(**{name: self.pairs[name] / 100 for name in shares})
        metrics = {
            metric.name: {"first": metric.first, "second": metric.second, **vars(metric.difference)}
            for metric in self.metrics
        }
        facts = {"first": self.names[0], "second": self.names[1], "data": self.data, "samples": self.samples}
        return {**facts, "metrics": metrics, "pairs": pairs.to_dict("records")}


def compare(first: Path, second: Path) -> Comparison:
    """Compare two runs, or two folders of `fit` with --folds or --protocol dg, that were tested on the same samples."""
    one, other = _run(first), _run(second)
    _check_same_data(one, other, first, second)
    told = [replace(run, known=True) for run in (one, other)]
    known = [answers(run) for run in (one, other, *told)]
    for place, found in zip((first, second), known, strict=False):
        if found is None:
            raise ValueError(f"{place} has no predictions.pt: remove its result.json and run its `crosstail fit` again")
    (a, truth), (b, _), (known_a, _), (known_b, _) = (found for found in known if found is not None)
    arguments = truth_of(one, (a, truth))
    metrics = list(_metrics(one, other, a, b, arguments))
    if (one.uses_domain or other.uses_domain) and not one.dg:
        metrics.insert(
            1, _metric(f"{metrics[0].name}, {TRACKS[1]}", *told, known_a, known_b, arguments, "pair_average")
        )
    names = (one.method, other.method) if one.method != other.method else (str(first), str(second))
    return Comparison(names, one.data, one.dg, len(a), metrics, _pairs(one, other, a, b, arguments))


def _run(place: Path) -> MethodRun:
    found, missing = method_runs(read_runs([place]).chosen)
    if missing and not found:
        raise ValueError(f"{place}: {missing[0]}")
    if len(found) > 1:
        raise ValueError(f"{place} holds {len(found)} runs, expected one: name one of them, or use crosstail report")
    return found[0]


def _check_same_data(one: MethodRun, other: MethodRun, first: Path, second: Path) -> None:
    """Refuse runs that were tested on different samples; the checksum covers the data and their split."""
    sums = [[(fold.spec.part, fold.data.checksum) for fold in run.folds] for run in (one, other)]
    if sums[0] == sums[1]:
        return
    specs = [run.folds[0].spec for run in (one, other)]
    fields = [*OF_SPLIT, *["seed"] * one.dg]
    differing = [name for name in fields if len({repr(getattr(spec, name)) for spec in specs}) > 1]
    said = "; ".join(f"{name} is {' and '.join(str(getattr(spec, name)) for spec in specs)}" for name in differing)
    raise ValueError(
        f"{first} and {second} were tested on different data or splits ({said or 'the data have changed in between'}): "
        "train one again with the data options of the other"
    )


def _metrics(one: MethodRun, other: MethodRun, a: Any, b: Any, truth: dict[str, Any]) -> Sequence[Metric]:
    views: dict[str, View] = {"pair average": "pair_average", "average over domains": "average"}
    if one.dg:
        views = {"accuracy on unseen domains": "average", "class mean": "pair_average"}
    views |= {"worst domain": "worst_domain", "worst pair": "worst_pair"}
    found = [_metric(name, one, other, a, b, truth, of) for name, of in views.items()]
    if not one.dg:
        shots = shot_group(one.counts, *shot_thresholds(one.folds[0].spec.dataset))
        for shot in SHOTS:
            own = shots[truth["domain"], truth["y"]] == shot
            if own.any():
                arrays = {
                    name: values[own] if isinstance(values, np.ndarray) else values for name, values in truth.items()
                }
                runs = [run.accuracy.only(shots == shot) for run in (one, other)]
                values = [run.pair_average or 0.0 for run in runs]
                found.append(Metric(f"{shot}-shot pairs", *values, paired_difference(a[own], b[own], **arrays)))
    return found


def _metric(name: str, one: MethodRun, other: MethodRun, a: Any, b: Any, truth: dict[str, Any], of: View) -> Metric:
    values = [getattr(run.accuracy, of) or 0.0 for run in (one, other)]
    return Metric(name, *values, paired_difference(a, b, **truth, of=of))


def _pairs(one: MethodRun, other: MethodRun, a: Any, b: Any, truth: dict[str, Any]) -> pd.DataFrame:
    fold, differences = one.folds[0], pair_differences(a, b, **truth)
    table = label_table(one.counts, fold.domains, fold.classes)
    table["tested"] = one.accuracy.totals.ravel()
    table["first"], table["second"] = (100 * run.accuracy.matrix.ravel() for run in (one, other))
    for name, values in (("difference", differences.estimate), ("low", differences.low), ("high", differences.high)):
        table[name] = 100 * values.ravel()
    table["p"], table["adjusted"] = differences.p_value.ravel(), differences.adjusted.ravel()
    return table[table["tested"] > 0].reset_index(drop=True)
