"""Scores of inputs, read a batch at a time, in this process or by actors on a Ray cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from crosstail.data import BrokenImage, examine, kind_of
from crosstail.data.examination import PIXELS
from crosstail.data.images.files import Samples
from crosstail.prediction.answers import KeptScores
from crosstail.prediction.predictor import Predictor
from crosstail.progress import Progress

BATCH = 64  # inputs predicted at a time

Rows = NDArray[np.int64]
Features = Callable[[Rows], Tensor]


@dataclass(frozen=True)
class NamedInputs:
    """Inputs with their names, and the domain of each, which may be UNKNOWN."""

    names: Sequence[str]
    x: Samples
    domain: NDArray[np.int64]
    skip_broken: bool = False
    """Whether a broken image is left out; otherwise it is an error."""

    def __len__(self) -> int:
        return len(self.names)

    def part(self, rows: slice) -> NamedInputs:
        x = kind_of(self.x).take(self.x, rows)
        return replace(self, names=self.names[rows], x=x, domain=self.domain[rows])

    def batches(self, rows: Rows, features: Features) -> Iterator[tuple[Rows, Tensor, dict[int, str]]]:
        """Batches of some rows: those that can be read, their features, and the problems of the others by row."""
        for start in range(0, len(rows), BATCH):
            some = rows[start : start + BATCH]
            try:
                yield some, features(some), {}
            except BrokenImage:
                problems = examine(kind_of(self.x).take(self.x, some), PIXELS).problems
                broken = {int(some[i]): problem for i, problem in problems.items()}
                if not self.skip_broken:
                    row, problem = next(iter(broken.items()))
                    raise ValueError(f"{self.names[row]}: {problem} (--skip-broken leaves it out)") from None
                some = np.array([row for row in some if row not in broken], np.int64)
                yield some, features(some), broken


@dataclass
class Scores:
    """Log probabilities (n, C) and distances (n,) of the rows (n,) that can be read, and the problems of the others."""

    rows: Rows
    log_p: NDArray[np.float32]
    distance: NDArray[np.float32]
    problems: dict[int, str]


class Scorer:
    """Log probabilities of some of the inputs at a time."""

    def __init__(self, predictor: Predictor, inputs: NamedInputs) -> None:
        self.predictor, self.inputs = predictor, inputs
        self.features = predictor.features_of(inputs.x, BATCH)

    def __call__(self, rows: Rows) -> Scores:
        width, nothing = len(self.predictor.classes), np.empty(0, np.float32)
        found, far = [nothing.reshape(0, width)], [nothing]
        read: list[Rows] = [np.empty(0, np.int64)]
        problems: dict[int, str] = {}
        for some, z, broken in self.inputs.batches(rows, self.features):
            problems |= broken
            if len(some):
                read.append(some)
                found.append(self.predictor.scored(z, self.inputs.domain[some]))
                far.append(self.predictor.distances(z, self.inputs.domain[some]))
        return Scores(np.concatenate(read), np.concatenate(found), np.concatenate(far), problems)


def predict_inputs(inputs: NamedInputs, kept: KeptScores, parts: Iterator[Scores], progress: Progress) -> Scores:
    """Scores of all inputs from the parts that are not kept already."""
    problems: dict[int, str] = {}
    total = len(inputs)
    progress("predicting", int(kept.done.sum()), total)
    for part in parts:
        kept.add(part.rows, part.log_p, part.distance)
        problems |= part.problems
        progress("predicting", int(kept.done.sum()) + len(problems), total)
    rows = np.flatnonzero(kept.done)
    log_p = kept.log_p if len(rows) == total else kept.log_p[rows]
    return Scores(rows, log_p, kept.distance[rows], dict(sorted(problems.items())))


def in_process(predictor: Predictor, inputs: NamedInputs, kept: KeptScores) -> Iterator[Scores]:
    """Scores of the inputs that are not kept, a batch at a time."""
    scorer = Scorer(predictor, inputs)
    for start in range(0, len(kept.done), BATCH):
        stop = min(start + BATCH, len(kept.done))
        if not kept.done[start:stop].all():
            yield scorer(np.arange(start, stop))


def on_ray(
    predictor: Predictor, inputs: NamedInputs, kept: KeptScores, workers: int | None, weights: Path | None, trust: bool
) -> Iterator[Scores]:
    """Scores from actors on a Ray cluster, all of which have the run and the files."""
    from crosstail.ray_actors import map_rows  # here, because Ray is an extra

    make = partial(_scorer, predictor.run.path, weights, trust, inputs)
    todo = partial(map_rows, make, len(inputs), batch=BATCH, workers=workers)
    for _, part in todo(wanted=lambda rows: not kept.done[rows.start : rows.stop].all()):
        yield part


def _scorer(run: Path, weights: Path | None, trust: bool, inputs: NamedInputs) -> Scorer:
    return Scorer(Predictor(run, weights, trust), inputs)
