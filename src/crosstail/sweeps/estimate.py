"""Estimate the time and disk space of a sweep from a few measured steps of each method."""

import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
from torch import Tensor

from crosstail import second_stages
from crosstail.data import DomainBatches, DomainDataset, load_source
from crosstail.progress import Progress
from crosstail.second_stages import FittedStage
from crosstail.sweeps.drive import check
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.worker import inputs
from crosstail.training.fit import threads, train_run
from crosstail.training.model import build_algorithm
from crosstail.training.resolve import steps_of_stages
from crosstail.training.run_data import Inputs, input_shape
from crosstail.training.second_stage import embedded, features_of
from crosstail.training.spec import RunSpec

STEPS = 10  # measured per stage
EVALUATIONS = 3  # among them, at most
UPDATES = 6  # measured of an algorithm alone; the first is slower
ROWS = 2000  # that a classifier is fitted to in a measurement, at most


@dataclass(frozen=True)
class SweepCost:
    """The cost of all runs of a method."""

    method: str
    runs: int
    seconds: float  # sequentially
    size: float  # bytes of the finished runs


class _RunCost(NamedTuple):
    """The cost of one run."""

    step: float  # seconds, of all stages
    rest: float  # of evaluations and all else
    size: float


def estimate(plan: Plan, progress: Progress | None = None) -> list[SweepCost]:
    """One row per method; nothing is written to the sweep's folder."""
    check(plan, load_source(plan.shared), progress)
    found = []
    for method in plan.methods:
        spec, number = plan.runs(method, {})[0], plan.runs_per_method
        assert spec.steps is not None
        cost = _measured(spec, inputs(spec))
        found.append(SweepCost(method, number, number * (spec.steps * cost.step + cost.rest), number * cost.size))
    return found


def _measured(spec: RunSpec, loaded: Inputs) -> _RunCost:
    assert spec.evaluations is not None
    few = min(EVALUATIONS, spec.evaluations)
    loaded.embedded()  # loading the data is not part of a run
    times: defaultdict[str, list[float]] = defaultdict(list)

    def note(what: str, done: int, total: int) -> None:
        times[what].append(time.perf_counter())

    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        short = replace(spec, steps=STEPS, evaluations=few)
        records = train_run(short, Path(name), progress=note, inputs=loaded).folder.records()
        whole = time.perf_counter() - began
        sizes = {file.name: file.stat().st_size for file in Path(name).iterdir()}
    step = sum(median(b - a for a, b in pairwise(stage)) for stage in times.values())
    fitted = 0.0 if records[-1].step else records[-1].seconds  # of a second stage without steps
    # Everything else is proportional to the number of evaluations, if any weights are trained in steps.
    trained = {record.stage for record in records if record.step}
    more = max(((spec.evaluations + 1) / sum(r.stage == stage for r in records) for stage in trained), default=1.0)
    rest = fitted + more * max(0.0, whole - STEPS * step - fitted)
    return _RunCost(step, rest, sum(sizes.values()) + (more - 1) * sizes["records.jsonl"])


def run_seconds(plan: Plan, loaded: Inputs) -> dict[str, float]:
    """Seconds of one run of each method on vectors: a short run of ERM, and for each method a few updates alone.

    A short run of each would take as long as a tenth of a race, most of it for evaluations, which cost all the same.
    """
    dataset = loaded.embedded()
    baseline = plan.runs("erm", {})[0]
    base, seconds = _measured(baseline, loaded), {}
    with threads(1):
        unit = _update_seconds(baseline, dataset)
        for method in plan.methods:
            spec = plan.runs(method, plan.drawn[method][0])[0]
            first, *second = steps_of_stages(spec)
            try:
                steps = first * _update_seconds(spec, dataset) / unit if first else 0.0
                fitted = _fit_seconds(spec, dataset)
            except Exception:  # the run itself tells why
                steps, fitted = float(first), 0.0
            stages = sum(steps > 0 for steps in (first, *second))
            seconds[method] = base.step * (steps + sum(second)) + base.rest * max(1, stages) + fitted
    return seconds


def _update_seconds(spec: RunSpec, dataset: DomainDataset) -> float:
    assert spec.steps is not None and spec.batch_size is not None
    algorithm = build_algorithm(spec, input_shape(dataset), dataset.counts("train"))
    batches = DomainBatches(dataset, batch_size=spec.batch_size, class_balanced=algorithm.class_balanced, seed=0)
    optimizers, times = algorithm.optimizers(), []
    for step, batch in enumerate(batches.stream(0, UPDATES)):
        began = time.perf_counter()
        algorithm.step, algorithm.steps = step, spec.steps
        algorithm.update(batch, optimizers, Tensor.backward)
        times.append(time.perf_counter() - began)
    return median(times[1:])


def _fit_seconds(spec: RunSpec, dataset: DomainDataset) -> float:
    """Of a second stage that is fitted, in proportion to the rows; 0 without one."""
    stage = second_stages.find(spec.second_stage) if spec.second_stage else None
    if not isinstance(stage, FittedStage):
        return 0.0
    every = max(1, len(dataset.rows("train")) // ROWS)
    algorithm = build_algorithm(spec, input_shape(dataset), dataset.counts("train"))
    part = embedded(algorithm, dataset.keep(np.arange(len(dataset)) % every == 0))
    began = time.perf_counter()
    stage.fit(features_of(spec, stage, algorithm, part))
    return every * (time.perf_counter() - began)
