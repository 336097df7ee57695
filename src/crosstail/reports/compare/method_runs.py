"""The runs of a method on one data set with one seed, as one: with folds and unseen domains, there are several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.criterion import Metric, sign
from crosstail.data import protocols, shot_thresholds
from crosstail.metrics import SHOTS, PairAccuracy, shot_group
from crosstail.reports.compare.measured import Measured, lacking, measured
from crosstail.reports.compare.read_runs import ComparedRun

ACCURACY: Metric = "accuracy"
TAIL = ("10th percentile", "90th percentile")
"""Tail percentile over pairs: 10th if higher is better, 90th if lower is."""


@dataclass(frozen=True)
class MethodRun:
    """A method on one data set with one seed: one run, or one for each unseen domain or fold."""

    data: str
    method: str
    seed: int
    folds: Sequence[ComparedRun]
    known: bool = False  # whether the metrics are those with the domain known
    metric: Metric = ACCURACY  # or one that needs probabilities

    @property
    def accuracy(self) -> PairAccuracy:
        """Test hits and totals of every pair, summed over the folds."""
        return PairAccuracy.pooled([fold.accuracy(self.known) for fold in self.folds])

    @property
    def measured(self) -> Measured:
        """The metric of every pair and domain, for a metric that needs probabilities."""
        folders, domains = tuple(fold.folder for fold in self.folds), tuple(self.folds[0].domains)
        return measured(folders, domains, self.metric, self.known)

    @property
    def by_domain(self) -> list[float | None]:
        """The metric of every domain."""
        if self.metric == ACCURACY:
            return self.accuracy.domains
        return [None if np.isnan(value) else float(value) for value in self.measured.of.domains]

    @property
    def worst_pair_tests(self) -> int:
        """Test samples of the pair where the metric is worst; 0 without any."""
        if self.metric == ACCURACY:
            return self.accuracy.worst_pair_tests
        worse = -sign(self.metric) * self.measured.of.pairs
        return 0 if np.isnan(worse).all() else int(self.accuracy.totals.flat[int(np.nanargmax(worse))])

    @property
    def uses_domain(self) -> bool:
        """Whether its models predict otherwise where the domain is known."""
        return any(fold.known_hits is not None for fold in self.folds)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Training samples of every pair, with folds their rounded mean, with dg those of the first unseen domain."""
        counted = self.folds[:1] if self.dg else self.folds
        return np.rint(np.mean([fold.counts for fold in counted], axis=0)).astype(np.int64)

    @property
    def spread(self) -> str:
        """What follows ± in a table over seeds."""
        return protocols.find(self.folds[0].spec.protocol).spread

    @property
    def dg(self) -> bool:
        """Whether each fold is tested on a domain that it was not trained on."""
        return self.folds[0].spec.unseen_domains

    @property
    def metrics(self) -> dict[str, float | None]:
        """The metric on the test samples by name; accuracies are between 0 and 1.

        With dg, accuracy is the share of correct samples of an unseen domain, and the class mean the mean accuracy of
        its classes; both are averaged over the unseen domains.
        """
        if self.metric != ACCURACY:
            return self._measured_metrics()
        accuracy = self.accuracy
        worst = {"worst domain": accuracy.worst_domain, "worst pair": accuracy.worst_pair}
        worst["10th percentile"] = accuracy.tenth_percentile
        if self.dg:
            tested = [fold.test for fold in self.folds if fold.test is not None]
            class_mean = float(np.mean(tested)) if tested else None
            return {"accuracy": accuracy.average, "class mean": class_mean, **worst}
        shots = accuracy.shots(self.counts, *shot_thresholds(self.folds[0].spec.dataset))
        return {"pair average": accuracy.pair_average, "average": accuracy.average, **shots, **worst}

    def _measured_metrics(self) -> dict[str, float | None]:
        """The same names, without shots in dg; the tail is that of the worst tenth of the pairs."""
        pair_average, average = self.measured.means()
        found: dict[str, float | None] = {"pair average": pair_average, "average": average}
        if pair_average is None:
            return found
        lower, pairs = sign(self.metric) < 0, self.measured.of.pairs
        if not self.dg:
            group = shot_group(self.counts, *shot_thresholds(self.folds[0].spec.dataset))
            shots = {shot: pairs[~np.isnan(pairs) & (group == shot)] for shot in SHOTS}
            found |= {shot: float(values.mean()) if len(values) else None for shot, values in shots.items()}
        domains = [value for value in self.by_domain if value is not None]
        found["worst domain"] = max(domains) if lower else min(domains)
        found["worst pair"] = float((np.nanmax if lower else np.nanmin)(pairs))
        found[TAIL[lower]] = float(np.nanquantile(pairs, 0.9 if lower else 0.1))
        return found

    @property
    def ranked_by(self) -> float:
        """The metric of `RANKED`, 0 without test samples."""
        if self.metric != ACCURACY:
            return self.measured.means()[0] or 0.0
        return (self.accuracy.average if self.dg else self.accuracy.pair_average) or 0.0


def method_runs(chosen: pd.DataFrame, metric: Metric = ACCURACY) -> tuple[list[MethodRun], list[str]]:
    """The runs by data set, method and seed, and sentences on those left out.

    They lack an unseen domain or fold, or the probabilities that a metric needs.
    """
    needed: dict[Any, set[str]] = {data: set(runs["part"].dropna()) for data, runs in chosen.groupby("data")}
    for data, run in zip(chosen["data"], chosen["run"], strict=True):
        needed[data] |= {replace(run.spec, fold=fold).part for fold in range(1, 1 + (run.spec.folds or 0))}
    found, missing = [], []
    for (data, method, seed), runs in chosen.groupby(["data", "method", "seed"], sort=False):
        absent = needed[data] - set(runs["part"])
        without = [run.folder for run in runs["run"] if metric != ACCURACY and lacking(run.folder)]
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
