"""Two runs on the same test samples: overall and pair by pair."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pandas as pd

from crosstail.data import DataSpec
from crosstail.metrics import LEVEL, SHOTS, Answers, Difference, Models, View, difference, find, shot_group
from crosstail.metrics._comparisons import pair_differences
from crosstail.reports.compare.method_runs import MethodRun, method_runs
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.label_table import label_table
from crosstail.reports.wording import TRACKS
from crosstail.training.run import Run

BY_CLASS = "balanced_accuracy"  # in which a domain has the mean over its classes


@dataclass(frozen=True)
class Compared:
    """One accuracy of both runs, between 0 and 1, and the first minus the second."""

    name: str
    first: float
    second: float
    test: Difference | None  # None for a worst case, of which nothing shows how certain it is

    @property
    def difference(self) -> float:
        return self.first - self.second


@dataclass(frozen=True, eq=False)
class Comparison:
    """What two runs have in common and where they differ; the first metric is what methods are ranked by."""

    names: tuple[str, str]
    data: str
    samples: int
    equal: bool  # whether the answers to all of them are the same
    metrics: Sequence[Compared]
    pairs: pd.DataFrame
    """One row per tested pair: domain, class, count, tested, accuracies and difference in %, its interval, p-values.

    `adjusted` is p, corrected for the number of pairs."""
    critical: Sequence[str] = ()
    """Classes that must not be missed, as one of the runs says."""

    @property
    def sure(self) -> pd.DataFrame:
        """The pairs that differ significantly after the correction."""
        return self.pairs[self.pairs["adjusted"] < LEVEL]

    def to_json(self) -> dict[str, Any]:
        """Everything as plain values; accuracies between 0 and 1."""
        shares = ("first", "second", "difference", "low", "high")
        pairs = self.pairs.assign(**{name: self.pairs[name] / 100 for name in shares})
        metrics = {
            metric.name: {
                "first": metric.first,
                "second": metric.second,
                "estimate": metric.difference,
                **{name: getattr(metric.test, name, None) for name in ("low", "high", "p_value")},
            }
            for metric in self.metrics
        }
        facts = {"first": self.names[0], "second": self.names[1], "data": self.data, "samples": self.samples}
        return {**facts, "metrics": metrics, "pairs": pairs.to_dict("records")}


def compare(first: Path, second: Path) -> Comparison:
    """Compare two runs, or two folders of `fit` with --folds or --protocol dg, that were tested on the same samples."""
    runs = _run(first), _run(second)
    _check_same_data(*runs, first, second)
    run = runs[0]
    one, other = (_answers(*of) for of in zip(runs, (first, second), strict=True))
    metrics = list(_metrics(run, one, other))
    if any(run.uses_domain for run in runs) and not run.dg:
        metrics.insert(1, _metric(f"{metrics[0].name}, {TRACKS[1]}", one.told, other.told))
    if come := _as_they_come(*runs):
        metrics.insert(1, come)
    names = run.method, runs[1].method
    if names[0] == names[1]:
        names = str(first), str(second)
    equal = bool((one.predicted == other.predicted).all())
    critical = dict.fromkeys(name for of in runs for name in Run(of.runs[0].folder).result.critical)
    return Comparison(names, run.data, len(one), equal, metrics, _pairs(run, one, other), list(critical))


def _run(place: Path) -> MethodRun:
    found, missing = method_runs(read_runs([place]).chosen)
    if missing and not found:
        raise ValueError(f"{place}: {missing[0]}")
    if len(found) > 1:
        raise ValueError(f"{place} holds {len(found)} runs, expected one: name one of them, or use crosstail report")
    return found[0]


def _check_same_data(one: MethodRun, other: MethodRun, first: Path, second: Path) -> None:
    """Refuse runs that were tested on different samples; the checksum covers the data and their split."""
    sums = [[(fold.spec.part, fold.data.checksum) for fold in run.runs] for run in (one, other)]
    if sums[0] == sums[1]:
        return
    specs = [run.runs[0].spec for run in (one, other)]
    named = [field.name for field in fields(DataSpec) if field.name != "seed" or one.dg]
    differing = [name for name in named if len({repr(getattr(spec, name)) for spec in specs}) > 1]
    said = "; ".join(f"{name} is {' and '.join(str(getattr(spec, name)) for spec in specs)}" for name in differing)
    raise ValueError(
        f"{first} and {second} were tested on different data or splits ({said or 'the data have changed in between'}): "
        "train one again with the data options of the other"
    )


def _answers(run: MethodRun, place: Path) -> Answers:
    found = run.answers
    if found is None:
        raise ValueError(f"{place} has no predictions.pt: remove its result.json and run its `crosstail fit` again")
    return found


def _metrics(run: MethodRun, one: Answers, other: Answers) -> Iterator[Compared]:
    views: dict[str, View] = {"pair average": "pair_average", "average over domains": "average"}
    if run.dg:
        views = {"accuracy on unseen domains": "average", "class mean": "pair_average"}
    views |= {"worst domain": "worst_domain", "worst pair": "worst_pair"}
    yield from (_metric(name, one, other, of) for name, of in views.items())
    if run.dg:
        return
    shots = shot_group(run.counts, *run.runs[0].shots)
    for shot in SHOTS:
        own = shots[one.domain, one.y] == shot
        if own.any():
            yield _metric(f"{shot}-shot pairs", one.keep(own), other.keep(own))


def _metric(name: str, one: Answers, other: Answers, of: View = "pair_average") -> Compared:
    first, second = (getattr(answers.value(BY_CLASS), of) or 0.0 for answers in (one, other))
    test = None
    if not of.startswith("worst"):
        a, b = (Models.of([find(BY_CLASS).sampled(answers)], of) for answers in (one, other))
        test = difference(a, b) if a and b else None
    return Compared(name, first, second, test)


def _as_they_come(first: MethodRun, second: MethodRun) -> Compared | None:
    """The accuracy of samples as they come, if both are calibrated and tested on domains that they were trained on."""
    if first.dg or not (first.calibrated and second.calibrated):
        return None
    a, b = (replace(run, metric="as_they_come") for run in (first, second))
    sides = [Models.of([run.sampled], "pair_average") for run in (a, b)]
    test = difference(sides[0], sides[1]) if sides[0] and sides[1] else None
    return Compared("samples as they come", a.pairs.pair_average or 0.0, b.pairs.pair_average or 0.0, test)


def _pairs(run: MethodRun, one: Answers, other: Answers) -> pd.DataFrame:
    samples, (domains, classes) = (one.correct, other.correct, one.y, one.domain), run.counts.shape
    differences = pair_differences(*samples, num_domains=domains, num_classes=classes, group=one.group)
    table = label_table(run.counts, one.domains, one.classes)
    table["tested"] = run.pairs.totals.ravel()
    table["first"], table["second"] = (100 * answers.value().matrix.ravel() for answers in (one, other))
    for name, values in (("difference", differences.estimate), ("low", differences.low), ("high", differences.high)):
        table[name] = 100 * values.ravel()
    table["p"], table["adjusted"] = differences.p_value.ravel(), differences.adjusted.ravel()
    return table[table["tested"] > 0].reset_index(drop=True)
