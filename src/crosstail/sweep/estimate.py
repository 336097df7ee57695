"""What a sweep will cost, from a few measured steps of each algorithm."""

import tempfile
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from crosstail import protocols
from crosstail.sweep.drive import check
from crosstail.sweep.plan import Plan
from crosstail.sweep.worker import inputs
from crosstail.training.loop import Progress

STEPS = 10  # that are measured


@dataclass(frozen=True)
class Cost:
    """Of all runs of an algorithm."""

    entry: str
    runs: int
    seconds: float  # one after the other
    size: float  # in bytes, once they are finished


def estimate(plan: Plan, progress: Progress | None = None) -> list[Cost]:
    """One row per algorithm; nothing is written into the sweep's folder."""
    check(plan, progress)
    return [_measured(plan, entry) for entry in plan.algorithms]


def _measured(plan: Plan, entry: str) -> Cost:
    spec = replace(plan.runs(entry, {})[0], steps=STEPS, evaluations=1)
    inputs(spec)  # reading the data is no part of a run
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        protocols.run(spec, Path(name), lambda what, *_: times.setdefault(what, []).append(time.perf_counter()), inputs)
        whole = time.perf_counter() - began
        sizes = {file.name: file.stat().st_size for file in Path(name).iterdir()}
    steps = [median(b - a for a, b in pairwise(stage)) for stage in times.values()]
    # A run of one evaluation has two, before the first step and after the last; with more, what is no step grows.
    more = (plan.shared.evaluations + 1) / 2
    seconds = plan.shared.steps * sum(steps) + more * max(0.0, whole - STEPS * sum(steps))
    size = sum(sizes.values()) + (more - 1) * sizes["records.jsonl"]
    return Cost(entry, plan.runs_per_algorithm, plan.runs_per_algorithm * seconds, plan.runs_per_algorithm * size)
