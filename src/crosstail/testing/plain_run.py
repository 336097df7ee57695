"""One run on easy data, which several checks share, and what becomes of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
import torch
import torch.nn.functional as F

from crosstail import algorithms
from crosstail.data import DomainDataset, to_input
from crosstail.progress import Progress
from crosstail.testing.easy_data import easy_run
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.model import build_algorithm, load_model
from crosstail.training.resolve import resolve, steps_of_stages
from crosstail.training.run_data import input_shape, load_inputs


@dataclass(frozen=True)
class PlainRun:
    """One run on easy data, shared by several checks."""

    outcome: dict[str, Any]
    reports: list[tuple[str, int, int]]  # of its progress
    taken: Sequence[int]  # steps of its stages
    cross_entropy: tuple[float, float]  # on the training set, before and after


@lru_cache(maxsize=1)
def plain_run(name: str) -> PlainRun:
    """The last one is kept."""
    with easy_run(name) as (spec, folder):
        reports: list[tuple[str, int, int]] = []
        outcome = outcome_of(spec, folder, lambda what, done, total: reports.append((what, done, total)))
        spec = resolve(spec)
        dataset = load_inputs(spec).embedded()
        before = _cross_entropy(build_algorithm(spec, input_shape(dataset), dataset.counts("train")), dataset)
        after = _cross_entropy(load_model(RunFolder(folder), dataset, trust=True), dataset)
        return PlainRun(outcome, reports, steps_of_stages(spec), (before, after))


def outcome_of(spec: RunSpec, folder: Path, progress: Progress | None = None) -> dict[str, Any]:
    """Everything a run produces except times, with test accuracies kept apart."""
    run = train_run(spec, folder, progress=progress)
    records = [msgspec.to_builtins(record) for record in run.folder.records()]
    return {
        **{key: getattr(run.result, key) for key in ("selected_step", "validation", "test", "transferability")},
        "weights": {key: value.numpy().tobytes() for key, value in run.folder.weights().items()},
        "records": [{k: v for k, v in record.items() if k not in ("seconds", "test")} for record in records],
        "test_records": [record["test"] for record in records],
    }


class Stop(Exception):
    """Ends a run early."""


def stopping_at(step: int) -> Progress:
    """Raises Stop at a step."""

    def progress(what: str, done: int, total: int) -> None:
        if done == step:
            raise Stop

    return progress


def _cross_entropy(algorithm: algorithms.Algorithm, dataset: DomainDataset) -> float:
    rows = dataset.rows("train")
    algorithm.eval()
    with torch.no_grad():
        scores = algorithm(to_input(dataset.x[rows]))
    return float(F.cross_entropy(scores, torch.from_numpy(dataset.y[rows])))
