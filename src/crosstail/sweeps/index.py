"""The accuracies of all finished runs."""

import os
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec

from crosstail.metrics import VIEWS, PairAccuracy, score
from crosstail.storage import names
from crosstail.training.result import RunResult, SplitAccuracy

Accuracies = dict[str, float | None]
"""Accuracies by metric."""


class Judged(NamedTuple):
    """The validation metric that is selected on, and its score, of which the largest is best."""

    value: float
    score: float

    @classmethod
    def mean(cls, each: Sequence["Judged"]) -> "Judged":
        return cls(fmean(one.value for one in each), fmean(one.score for one in each))


class Summary(msgspec.Struct, frozen=True):
    """The part of a result that a sweep needs: seconds, CRITERIA on validation, and VIEWS on test."""

    seconds: float
    validation: Accuracies
    test: Accuracies
    pairs: SplitAccuracy | None = None  # of a fold, whose test samples are pooled with the other folds'
    known: Accuracies | None = None  # VIEWS on test with the domain known, if the model uses it
    known_pairs: SplitAccuracy | None = None  # the same of a fold

    def judged(self, on: str) -> "Judged | None":
        """Metric and score to select by; None without validation samples."""
        if on not in self.validation:
            known = ", ".join(self.validation)
            raise ValueError(
                f"some result.json of the sweep lacks {on}: select on one of {known}, or repeat the sweep with another "
                "--out"
            )
        value, found = self.validation[on], score(self.validation[on], self.validation["pair_average"], on)
        return None if value is None or found is None else Judged(value, found)


def pooled_test(folds: Sequence[Summary], known: bool = False) -> Accuracies:
    """The test accuracies of a run, or of all its folds together, with the domain `known` if the model uses it."""
    if len(folds) == 1:
        return (folds[0].known if known else None) or folds[0].test
    parts = [(fold.known_pairs if known else None) or fold.pairs for fold in folds]
    accuracy = PairAccuracy.pooled([part.pairs() for part in parts if part is not None])
    return {metric: getattr(accuracy, metric) for metric in VIEWS}


class Index:
    """The summaries of all finished runs of a sweep; this process reads a result again only if it has changed."""

    def __init__(self, folder: Path) -> None:
        self._runs = folder / "runs"
        self._known: dict[str, tuple[os.stat_result, Summary]] = {}
        self.damaged: list[str] = []

    def read(self) -> dict[str, Summary]:
        """The summaries of the finished runs, by key; `damaged` then lists the folders without a valid result."""
        known, self._known, self.damaged = self._known, {}, []
        for key in names(self._runs):
            path = Path(f"{self._runs}/{key}/result.json")
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                self.damaged.append(key)
                continue
            before, summary = known.get(key, (None, None))
            if before is None or (before.st_mtime_ns, before.st_size) != (status.st_mtime_ns, status.st_size):
                summary = read_summary(path, key)
            if summary is None:
                self.damaged.append(key)
            else:
                self._known[key] = status, summary
        return {key: summary for key, (_, summary) in self._known.items()}


def read_summary(path: Path, key: str) -> Summary | None:
    """The summary of a result, or None if it is not the complete result of the run with this key."""
    try:
        result = msgspec.json.decode(path.read_bytes(), type=RunResult)
    except (FileNotFoundError, msgspec.DecodeError, RecursionError):  # other I/O errors are raised
        return None
    if result.spec.key != key:
        return None
    known = result.known.test if result.known else None
    pairs, known_pairs = (result.test, known) if result.spec.fold else (None, None)
    validation, told = _views(result.validation) | result.validation.more(), _views(known) if known else None
    return Summary(result.seconds, validation, _views(result.test), pairs, told, known_pairs)


def _views(split: SplitAccuracy) -> Accuracies:
    return {name: getattr(split, name) for name in VIEWS}
