"""Estimate the time and disk space of a sweep from a few measured steps of each method."""

import heapq
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from crosstail import second_stages
from crosstail.data import DomainBatches, DomainDataset, load_source, protocols
from crosstail.machine import cores
from crosstail.progress import Progress, labelled, silent
from crosstail.second_stages import FittedStage
from crosstail.sweeps.drive import check, trials
from crosstail.sweeps.first_stages import with_first_stages
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.worker import Job, inputs
from crosstail.training.fit import threads, train_run
from crosstail.training.model import build_algorithm
from crosstail.training.resolve import steps_of_stages
from crosstail.training.run_data import Inputs, input_shape
from crosstail.training.second_stage import embedded, features_of
from crosstail.training.spec import RunSpec

STEPS = 10  # measured per stage
EVALUATIONS = 3  # among them
UPDATES = 6  # measured of an algorithm alone; the first is slower
ROWS = 2000  # that a classifier is fitted to in a measurement, at most


@dataclass(frozen=True)
class SweepCost:
    """The cost of all runs of a method."""

    method: str
    runs: int
    seconds: float  # sequentially
    size: float  # bytes of the finished runs


class _StageCost(NamedTuple):
    """The cost of a stage that takes steps."""

    steps: int
    step: float  # seconds of one
    evaluating: float  # seconds

    @property
    def seconds(self) -> float:
        return self.steps * self.step + self.evaluating


class _RunCost(NamedTuple):
    """The cost of one run."""

    stages: list[_StageCost]
    rest: float  # seconds
    size: float

    def seconds(self, job: Job, asked: bool) -> float:
        """What a job takes: less where it begins after a first stage, or is nothing but a first stage."""
        own = self.stages[1:] if job.after else self.stages if asked else self.stages[:1]
        return sum(stage.seconds for stage in own) + self.rest


def estimate(plan: Plan, workers: int, progress: Progress = silent) -> tuple[list[SweepCost], float]:
    """One row per method, and the seconds of all with these workers; nothing is written to the sweep's folder."""
    began = time.perf_counter()
    source = load_source(plan.shared, progress)
    seconds = time.perf_counter() - began  # each worker reads the data too
    check(plan, source, progress)
    specs, costs = {method: plan.runs(method, plan.drawn[method][0])[0] for method in plan.methods}, {}
    with threads(max(1, cores() // workers)):
        for method, spec in specs.items():
            costs[method] = _measured(spec, inputs(spec), labelled(progress, f"measuring {method}"))
    taken = dict.fromkeys(plan.methods, 0.0)
    best = [search.finals(method, search.drawn[method][0]) for search in plan.searches for method in search.methods]
    seeds = [Job(spec) for finals in best for specs in finals[1:] for spec in specs]  # as if the first trial were best
    for phase in (trials(plan), seeds):
        jobs = with_first_stages(lambda key: False, phase)
        asked, owner = {job.spec.key for job in phase}, {job.after: job.spec.method for job in jobs.values()}
        for later in (False, True):
            free = [0.0] * workers  # when each worker is
            for key, job in jobs.items():
                if bool(job.after) == later:
                    method = job.spec.method if key in asked else owner[key]
                    lasts = costs[method].seconds(job, key in asked)
                    taken[method] += lasts
                    heapq.heapreplace(free, free[0] + lasts)
            seconds += max(free)
    number = plan.runs_per_method + plan.more_per_method
    return [SweepCost(method, number, taken[method], number * costs[method].size) for method in plan.methods], seconds


def _measured(spec: RunSpec, loaded: Inputs, progress: Progress = silent) -> _RunCost:
    assert spec.steps is not None and spec.evaluations is not None
    loaded.embedded()  # loading the data is not part of a run
    torch.optim.Adam([torch.nn.Parameter(torch.zeros(1))])  # the first one of a process takes two seconds
    times: defaultdict[str, list[float]] = defaultdict(list)

    def note(what: str, done: int, total: int) -> None:
        if what.startswith("stage"):
            times[what].append(time.perf_counter())
        progress(what, done, total)

    progress("stage 1", 0, STEPS)
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        short = replace(spec, steps=STEPS, evaluations=EVALUATIONS)
        records = train_run(short, Path(name), progress=note, inputs=loaded).folder.records()
        rest = time.perf_counter() - began
        sizes = {file.name: file.stat().st_size for file in Path(name).iterdir()}
    due, stages = protocols.find(spec.protocol).due(spec.steps, min(spec.evaluations, spec.steps)) | {spec.steps}, []
    for what, passed in times.items():
        evaluated = [record.step for record in records if what == f"stage {record.stage}"]
        steps = [b - a for a, b in pairwise(passed)]
        step = median(steps)
        evaluation = max(0.0, sum(steps) - len(steps) * step) / sum(0 < at < STEPS for at in evaluated)
        stages.append(_StageCost(spec.steps, step, len(due) * evaluation))
        rest -= STEPS * step + len(evaluated) * evaluation
    grown = len(stages) * len(due) / len(records) if stages else 1.0
    size = sum(sizes.values()) + (grown - 1) * sizes["records.jsonl"]
    return _RunCost(stages, max(0.0, rest), size)


def run_seconds(plan: Plan, loaded: Inputs) -> dict[str, float]:
    """Seconds of one run of each method on vectors: a short run of ERM, and for each method a few updates alone.

    A short run of each would take as long as a tenth of a race, most of it for evaluations, which cost all the same.
    """
    dataset = loaded.embedded()
    baseline = plan.runs("erm", {})[0]
    base, seconds = _measured(baseline, loaded), {}
    (unit_cost,) = base.stages
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
            trained = unit_cost.step * (steps + sum(second)) + unit_cost.evaluating * stages
            seconds[method] = trained + base.rest + fitted
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
