"""Inputs to be predicted, read a batch at a time, in this process or by actors on a Ray cluster."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data import BrokenImage, ImageFiles
from crosstail.data.dataset import Samples
from crosstail.data.images.broken import problem_of
from crosstail.prediction.predictor import Predictor
from crosstail.progress import Progress

BATCH = 64  # inputs predicted at a time

Rows = NDArray[np.int64]


@dataclass(frozen=True)
class Inputs:
    """Inputs with their names, and the domain of each, which may be UNKNOWN."""

    names: Sequence[str]
    x: Samples
    domain: NDArray[np.int64]
    skip_broken: bool = False
    """Whether a broken image is left out; otherwise it is an error."""

    def __len__(self) -> int:
        return len(self.names)

    def batches(self, rows: Rows) -> Iterator[tuple[Rows, NDArray[Any], dict[int, str]]]:
        """Batches of some rows: those that can be read, their inputs, and the problems of the others by row."""
        for start in range(0, len(rows), BATCH):
            some = rows[start : start + BATCH]
            try:
                yield some, self.x[some], {}
            except BrokenImage:
                assert isinstance(self.x, ImageFiles)
                broken = {int(row): problem for row in some if (problem := problem_of(self.x, int(row)))}
                if not self.skip_broken:
                    row, problem = next(iter(broken.items()))
                    raise ValueError(f"{self.names[row]}: {problem} (--skip-broken leaves it out)") from None
                some = np.array([row for row in some if row not in broken], np.int64)
                yield some, self.x[some], broken


@dataclass
class Scores:
    """Log probabilities (n, C) of the rows (n,) that can be read, and the problems of the others by row."""

    rows: Rows
    log_p: NDArray[np.float32]
    problems: dict[int, str]


class Scorer:
    """Log probabilities of some of the inputs at a time."""

    def __init__(self, predictor: Predictor, inputs: Inputs) -> None:
        self.predictor, self.inputs = predictor, inputs
        if predictor.embedder is not None:
            predictor.embedder.expect(len(inputs))

    def __call__(self, rows: Rows, progress: Callable[[int], None] = lambda done: None) -> Scores:
        """Scores of some rows; `progress` hears how many are done."""
        read, found = np.zeros(len(rows), bool), np.empty((len(rows), len(self.predictor.classes)), np.float32)
        problems: dict[int, str] = {}
        done = 0
        for some, x, broken in self.inputs.batches(rows):
            problems |= broken
            here = np.searchsorted(rows, some)
            if len(some):
                read[here] = True
                found[here] = self.predictor.scored(self.predictor.features(x), self.inputs.domain[some])
            done += len(some) + len(broken)
            progress(done)
        return Scores(rows[read], found if read.all() else found[read], problems)


def predict_inputs(predictor: Predictor, inputs: Inputs, progress: Progress) -> Scores:
    """Scores of all inputs, computed in this process."""
    every = np.arange(len(inputs))
    return Scorer(predictor, inputs)(every, lambda done: progress("predicting", done, len(inputs)))


def predict_on_ray(
    predictor: Predictor, inputs: Inputs, progress: Progress, *, workers: int | None, weights: Path | None, trust: bool
) -> Scores:
    """The same scores, computed by actors that all have the run and the files."""
    from crosstail.ray_actors import map_rows  # here, because Ray is an extra

    parts: dict[int, Scores] = {}
    make = partial(_scorer, predictor.folder.path, weights, trust, inputs)
    done = 0
    for rows, part in map_rows(make, len(inputs), batch=BATCH, workers=workers):
        parts[rows.start] = part
        done += rows.stop - rows.start
        progress("predicting", done, len(inputs))
    in_order = [parts[start] for start in sorted(parts)]
    return Scores(
        np.concatenate([part.rows for part in in_order]),
        np.concatenate([part.log_p for part in in_order]),
        {row: problem for part in in_order for row, problem in part.problems.items()},
    )


def _scorer(run: Path, weights: Path | None, trust: bool, inputs: Inputs) -> Scorer:
    return Scorer(Predictor(run, weights, trust), inputs)
