"""The runs of a method on one data set with one seed, as one: with folds and unseen domains, there are several."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data import shot_thresholds
from crosstail.metrics import PairAccuracy
from crosstail.report.compare.read_runs import ComparedRun


@dataclass(frozen=True)
class MethodRun:
    """A method on one data set with one seed: one run, or one for each unseen domain or fold."""

    data: str
    method: str
    seed: int
    folds: Sequence[ComparedRun]
    known: bool = False  # whether the accuracies are those with the domain known

    @property
    def accuracy(self) -> PairAccuracy:
        """Test hits and totals of every pair, summed over the folds."""
        return PairAccuracy.pooled([fold.accuracy(self.known) for fold in self.folds])

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
    def dg(self) -> bool:
        """Whether each fold is tested on a domain that it was not trained on."""
        return self.folds[0].spec.protocol == "dg"

    @property
    def metrics(self) -> dict[str, float | None]:
        """The test accuracies by name, between 0 and 1.

        With dg, accuracy is the share of correct samples of an unseen domain, and the class mean the mean accuracy of
        its classes; both are averaged over the unseen domains.
        """
        accuracy = self.accuracy
        worst = {"worst domain": accuracy.worst_domain, "worst pair": accuracy.worst_pair}
        worst["10th percentile"] = accuracy.tenth_percentile
        if self.dg:
            tested = [fold.test for fold in self.folds if fold.test is not None]
            class_mean = float(np.mean(tested)) if tested else None
            return {"accuracy": accuracy.average, "class mean": class_mean, **worst}
        shots = accuracy.shots(self.counts, *shot_thresholds(self.folds[0].spec.dataset))
        return {"pair average": accuracy.pair_average, "average": accuracy.average, **shots, **worst}

    @property
    def ranked_by(self) -> float:
        """The metric of `RANKED`, 0 without test samples."""
        return (self.accuracy.average if self.dg else self.accuracy.pair_average) or 0.0


def method_runs(chosen: pd.DataFrame) -> tuple[list[MethodRun], list[str]]:
    """The runs by data set, method and seed, and sentences on those left out for lack of an unseen domain or fold."""
    needed: dict[Any, set[str]] = {data: set(runs["part"].dropna()) for data, runs in chosen.groupby("data")}
    for data, run in zip(chosen["data"], chosen["run"], strict=True):
        needed[data] |= {replace(run.spec, fold=fold).part for fold in range(1, 1 + (run.spec.folds or 0))}
    found, missing = [], []
    for (data, method, seed), runs in chosen.groupby(["data", "method", "seed"], sort=False):
        lacking = needed[data] - set(runs["part"])
        if lacking:
            missing.append(f"{method} on {data}, seed {seed}: no run for {', '.join(sorted(lacking))}")
        else:
            found.append(MethodRun(str(data), str(method), int(str(seed)), list(runs.sort_values("part")["run"])))
    return found, missing
