"""The runs of a method on one data set with one seed, as one: with folds and unseen domains, there are several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import protocols
from crosstail.metrics import DEFAULT, Answers, PairAccuracy, PairValues, SampleValues, View, Weighting, find
from crosstail.metrics._calibration import Calibration, calibrated
from crosstail.reports.compare.read_runs import ReportRow
from crosstail.training.result import PROBABILITIES
from crosstail.training.run import Run

TAIL: tuple[str, str] = ("10th percentile", "90th percentile")
"""Tail percentile over pairs: 10th if higher is better, 90th if lower is."""


@dataclass(frozen=True)
class MethodRun:
    """A method on one data set with one seed: one run, or one for each unseen domain or fold."""

    data: str
    method: str
    seed: int
    runs: Sequence[ReportRow]
    known: bool = False  # whether the metrics are those with the domain known
    metric: str = DEFAULT  # or one that is computed from stored probabilities

    @property
    def pairs(self) -> PairValues:
        """The metric of every pair and domain, on the test samples of all runs."""
        if self.metric == DEFAULT:  # which needs no samples, so thousands of runs are compared in a second
            return PairAccuracy.pooled([run.accuracy(self.known) for run in self.runs])
        return self._measured[0]

    @property
    def by_domain(self) -> PairValues:
        """The same with the mean over its classes for a domain, or the share of its samples, as the protocol says."""
        values, protocol = self.pairs, protocols.find(self.runs[0].spec.protocol)
        plain = isinstance(values, PairAccuracy) and values.weights is None and not protocol.by_share
        return values.by_class() if plain else values  # type: ignore[attr-defined]

    @property
    def sampled(self) -> SampleValues | None:
        """The metric with the influence of each sample; None if the answers are not stored."""
        if self.metric != DEFAULT:
            return self._measured[1]
        return None if self.answers is None else find(DEFAULT).sampled(self.answers)

    @cached_property
    def _measured(self) -> tuple[PairValues, SampleValues]:
        """A metric of the calibrated probabilities of the runs, as `crosstail predict` gives them."""
        parts = []
        for run in (Run(one.folder) for one in self.runs):
            assert run.held_out is not None  # runs that lack them are left out
            given = run.calibration or Calibration.none(run.result.domains, len(run.result.classes))
            test = calibrated(run.held_out.test, given)
            parts.append(test.told if self.known else test)
        answers, metric = Answers.pooled(parts), find(self.metric)
        return metric.values(answers), metric.sampled(answers)

    @property
    def answers(self) -> Answers | None:
        """Every test sample with its predicted class; None unless all runs have stored them."""
        parts = [part for run in self.runs if (part := Run(run.folder).test) is not None]
        if len(parts) < len(self.runs):
            return None
        every = Answers.pooled(parts)
        return every.told if self.known else every

    @property
    def calibrated(self) -> bool:
        """Whether all runs have kept probabilities and a calibration that was fitted on samples."""
        given = [run.calibration for one in self.runs if (run := Run(one.folder)).held_out is not None]
        return len(given) == len(self.runs) and all(one is not None and one.samples for one in given)

    @property
    def uses_domain(self) -> bool:
        """Whether its models predict otherwise where the domain is known."""
        return any(run.known_hits is not None for run in self.runs)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Training samples of every pair: with folds their rounded mean, with dg for the first unseen domain."""
        counted = self.runs[:1] if self.dg else self.runs
        return np.rint(np.mean([run.counts for run in counted], axis=0)).astype(np.int64)

    @property
    def spread(self) -> str:
        """What follows ± in a table over seeds."""
        return protocols.find(self.runs[0].spec.protocol).spread

    @property
    def dg(self) -> bool:
        """Whether each run is tested on a domain that it was not trained on."""
        return self.runs[0].spec.unseen_domains

    @property
    def metrics(self) -> dict[str, float | None]:
        """The metric on the test samples by name, as a share if it is one.

        With dg, accuracy is the share of correct samples of an unseen domain, and the class mean the mean accuracy of
        its classes; both are averaged over the unseen domains.
        """
        values = self.pairs
        found: dict[str, float | None] = {}
        for name, weighting in averages(self).items():
            found[name] = class_mean(values) if weighting == "class_mean" else getattr(values, weighting)
        if not self.dg:
            found |= values.shots(self.counts, *self.runs[0].shots)
        if values.pair_average is None:
            return found
        tail = TAIL[not values.higher_is_better]
        return found | {"worst domain": self.by_domain.worst_domain, "worst pair": values.worst_pair, tail: values.tail}

    @property
    def ranked_by(self) -> float | None:
        """The value of `ranked_view`; None without test samples."""
        found: float | None = getattr(self.pairs, self.ranked_view)
        return found

    @property
    def ranked_view(self) -> View:
        """What methods are ranked by: the first of the averages."""
        return "average" if self.dg and self.metric == DEFAULT else "pair_average"


def averages(run: MethodRun) -> dict[str, Weighting]:
    """The averages of a metric by name; methods are ranked by the first.

    With dg, accuracy is the share of correct samples of an unseen domain, as in DomainBed.
    """
    if run.dg and run.metric == DEFAULT:
        return {"accuracy": "average", "class mean": "class_mean"}
    return {"mean" if find(run.metric).frequent else "pair average": "pair_average", "average": "average"}


def class_mean(values: PairValues) -> float | None:
    """Mean over domains of the mean over their classes; None without test samples."""
    means = [float(row[~np.isnan(row)].mean()) for row in values.matrix if not np.isnan(row).all()]
    return float(np.mean(means)) if means else None


def by_method(found: Sequence[MethodRun], data: str) -> dict[str, list[MethodRun]]:
    """The runs on a data set, one for each seed, by method."""
    own: dict[str, list[MethodRun]] = {}
    for run in found:
        if run.data == data:
            own.setdefault(run.method, []).append(run)
    return own


def method_runs(chosen: pd.DataFrame, metric: str = DEFAULT) -> tuple[list[MethodRun], list[str]]:
    """The runs by data set, method and seed, and sentences on those left out.

    They lack an unseen domain or fold, or the probabilities that a metric needs.
    """
    needed: dict[Any, set[str]] = {data: set(runs["part"].dropna()) for data, runs in chosen.groupby("data")}
    for data, run in zip(chosen["data"], chosen["run"], strict=True):
        needed[data] |= {replace(run.spec, fold=fold).part for fold in range(1, 1 + (run.spec.folds or 0))}
    found, missing = [], []
    for (data, method, seed), runs in chosen.groupby(["data", "method", "seed"], sort=False):
        absent = needed[data] - set(runs["part"])
        without = [run.folder for run in runs["run"] if metric != DEFAULT and not (run.folder / PROBABILITIES).exists()]
        if absent:
            missing.append(f"{method} on {data}, seed {seed}: no run for {', '.join(sorted(absent))}")
        elif without:
            missing.append(
                f"{without[0]} has not kept its probabilities, which {metric} needs; repeating its command adds them"
            )
        else:
            own = list(runs.sort_values("part")["run"])
            found.append(MethodRun(str(data), str(method), int(str(seed)), own, metric=metric))
    return found, missing
