"""The accuracies of all finished runs, cached so that not every result is read again."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import msgspec

from crosstail.metrics import VIEWS, PairAccuracy, score
from crosstail.storage import names, write_whole
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


class IndexLine(msgspec.Struct, frozen=True, array_like=True):
    """A run's summary, valid while its result has this modification time and size."""

    key: str
    stamp: tuple[int, int]
    summary: Summary

    def __post_init__(self) -> None:
        known = self.summary
        for found in (known.validation, known.test, known.known):
            if found is not None and not found.keys() >= set(VIEWS):
                raise ValueError(f"lacks one of {', '.join(VIEWS)}")


class Index:
    """A file beside the runs with one line per result, rebuilt from the results when it is missing or damaged."""

    def __init__(self, folder: Path) -> None:
        self._runs = folder / "runs"
        self._file = folder / "index.jsonl"
        self._lines: dict[str, IndexLine] | None = None
        self.damaged: list[str] = []

    def read(self) -> dict[str, Summary]:
        """The summaries of the finished runs, by key; `damaged` then lists the folders without a valid result."""
        known = self._load() if self._lines is None else self._lines
        self._lines, self.damaged = {}, []
        new = 0
        for key in names(self._runs):
            path = Path(f"{self._runs}/{key}/result.json")
            try:
                status = path.stat()
            except (FileNotFoundError, NotADirectoryError):
                self.damaged.append(key)
                continue
            stamp, line = (status.st_mtime_ns, status.st_size), known.get(key)
            if line is None or line.stamp != stamp:
                new += 1
                summary = read_summary(path, key)
                line = IndexLine(key, stamp, summary) if summary else None
            if line is None:
                self.damaged.append(key)
            else:
                self._lines[key] = line
        if new * 20 > len(self._lines):
            with suppress(OSError):  # the disk may be full, and the index is only a cache
                write_whole(self._file, b"".join(msgspec.json.encode(line) + b"\n" for line in self._lines.values()))
        return {key: line.summary for key, line in self._lines.items()}

    def _load(self) -> dict[str, IndexLine]:
        try:
            lines = [msgspec.json.decode(line, type=IndexLine) for line in self._file.read_bytes().splitlines()]
        except (OSError, msgspec.DecodeError, RecursionError):
            return {}  # read the results themselves instead
        return {line.key: line for line in lines}


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
    validation, told = views(result.validation) | result.validation.more(), views(known) if known else None
    return Summary(result.seconds, validation, views(result.test), pairs, told, known_pairs)


def views(split: SplitAccuracy) -> Accuracies:
    """The views of the accuracy on one split."""
    return {name: getattr(split, name) for name in VIEWS}
