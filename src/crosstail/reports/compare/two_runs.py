"""Two runs on the same test samples: overall and pair by pair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import shot_thresholds
from crosstail.metrics import SHOTS, Difference, View, paired_difference, shot_group
from crosstail.metrics._comparisons import pair_differences
from crosstail.reports.compare.method_runs import MethodRun, method_runs
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.significance import LEVEL, answers, truth_of
from crosstail.reports.label_table import label_table
from crosstail.reports.wording import TRACKS

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


class Side(NamedTuple):
    """A run and whether it classifies each test sample correctly (N,)."""

    run: MethodRun
    correct: NDArray[np.bool_]


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
    runs = _run(first), _run(second)
    _check_same_data(*runs, first, second)
    (one, truth), (other, _) = (_answered(*of) for of in zip(runs, (first, second), strict=True))
    metrics = list(_metrics(one, other, truth))
    if any(run.uses_domain for run in runs) and not one.run.dg:
        (one_told, _), (other_told, _) = (
            _answered(replace(run, known=True), place) for run, place in zip(runs, (first, second), strict=True)
        )
        metrics.insert(1, _metric(f"{metrics[0].name}, {TRACKS[1]}", one_told, other_told, truth, "pair_average"))
    methods = one.run.method, other.run.method
    names = methods if methods[0] != methods[1] else (str(first), str(second))
    return Comparison(names, one.run.data, len(one.correct), metrics, _pairs(one, other, truth))


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


def _answered(run: MethodRun, place: Path) -> tuple[Side, dict[str, Any]]:
    """The answers of a run, and the test samples as arguments of a paired test."""
    found = answers(run)
    if found is None:
        raise ValueError(f"{place} has no predictions.pt: remove its result.json and run its `crosstail fit` again")
    return Side(run, found[0]), truth_of(run, found)


def _metrics(one: Side, other: Side, truth: dict[str, Any]) -> Iterator[Metric]:
    views: dict[str, View] = {"pair average": "pair_average", "average over domains": "average"}
    if one.run.dg:
        views = {"accuracy on unseen domains": "average", "class mean": "pair_average"}
    views |= {"worst domain": "worst_domain", "worst pair": "worst_pair"}
    yield from (_metric(name, one, other, truth, of) for name, of in views.items())
    if one.run.dg:
        return
    shots = shot_group(one.run.counts, *shot_thresholds(one.run.folds[0].spec.dataset))
    for shot in SHOTS:
        own = shots[truth["domain"], truth["y"]] == shot
        if own.any():
            arrays = {name: values[own] if isinstance(values, np.ndarray) else values for name, values in truth.items()}
            first, second = (side.run.accuracy.only(shots == shot).pair_average or 0.0 for side in (one, other))
            difference = paired_difference(one.correct[own], other.correct[own], **arrays)
            yield Metric(f"{shot}-shot pairs", first, second, difference)


def _metric(name: str, one: Side, other: Side, truth: dict[str, Any], of: View) -> Metric:
    first, second = (getattr(side.run.accuracy, of) or 0.0 for side in (one, other))
    return Metric(name, first, second, paired_difference(one.correct, other.correct, **truth, of=of))


def _pairs(one: Side, other: Side, truth: dict[str, Any]) -> pd.DataFrame:
    fold, differences = one.run.folds[0], pair_differences(one.correct, other.correct, **truth)
    table = label_table(one.run.counts, fold.domains, fold.classes)
    table["tested"] = one.run.accuracy.totals.ravel()
    table["first"], table["second"] = (100 * side.run.accuracy.matrix.ravel() for side in (one, other))
    for name, values in (("difference", differences.estimate), ("low", differences.low), ("high", differences.high)):
        table[name] = 100 * values.ravel()
    table["p"], table["adjusted"] = differences.p_value.ravel(), differences.adjusted.ravel()
    return table[table["tested"] > 0].reset_index(drop=True)
