"""Estimate the time and disk space of a sweep from a few measured steps of each method."""

import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from crosstail.data import load_source
from crosstail.progress import Progress
from crosstail.sweeps.drive import check
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.worker import inputs
from crosstail.training.fit import train_run

STEPS = 10  # measured per stage


@dataclass(frozen=True)
class SweepCost:
    """The cost of all runs of a method."""

    method: str
    runs: int
    seconds: float  # sequentially
    size: float  # bytes of the finished runs


def estimate(plan: Plan, progress: Progress | None = None) -> list[SweepCost]:
    """One row per method; nothing is written to the sweep's folder."""
    check(plan, load_source(plan.shared), progress)
    return [_measured(plan, method) for method in plan.methods]


def _measured(plan: Plan, method: str) -> SweepCost:
    spec = replace(plan.runs(method, {})[0], steps=STEPS, evaluations=1)
    loaded = inputs(spec)
    loaded.embedded()  # loading the data is not part of a run
    times: defaultdict[str, list[float]] = defaultdict(list)

    def note(what: str, done: int, total: int) -> None:
        times[what].append(time.perf_counter())

    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        last = train_run(spec, Path(name), progress=note, inputs=loaded).folder.records()[-1]
        whole = time.perf_counter() - began
        sizes = {file.name: file.stat().st_size for file in Path(name).iterdir()}
    steps = [median(b - a for a, b in pairwise(stage)) for stage in times.values()]
    fitted = 0.0 if last.step else last.seconds  # of a second stage without steps
    # One evaluation means two, at the start and at the end; everything else is proportional to their number.
    more = (plan.shared.evaluations + 1) / 2
    assert plan.shared.steps is not None
    seconds = plan.shared.steps * sum(steps) + fitted + more * max(0.0, whole - STEPS * sum(steps) - fitted)
    size = sum(sizes.values()) + (more - 1) * sizes["records.jsonl"]
    return SweepCost(method, plan.runs_per_method, plan.runs_per_method * seconds, plan.runs_per_method * size)
