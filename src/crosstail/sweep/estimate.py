"""What a sweep will cost, from a few measured steps of each method."""

import tempfile
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from statistics import median

from crosstail.sweep.drive import check
from crosstail.sweep.plan import Plan
from crosstail.sweep.worker import inputs
from crosstail.training.fit import fit
from crosstail.training.inputs import load_source
from crosstail.training.progress import Progress

STEPS = 10  # that are measured


@dataclass(frozen=True)
class SweepCost:
    """The cost of all runs of a method."""

    method: str
    runs: int
    seconds: float  # one after the other
    size: float  # in bytes, once they are finished


def estimate(plan: Plan, progress: Progress | None = None) -> list[SweepCost]:
    """One row per method; nothing is written into the sweep's folder."""
    check(plan, load_source(plan.shared), progress)
    return [_measured(plan, method) for method in plan.methods]


def _measured(plan: Plan, method: str) -> SweepCost:
    spec = replace(plan.runs(method, {})[0], steps=STEPS, evaluations=1)
    loaded = inputs(spec)
    loaded.seen()  # reading the data is not part of a run
    times: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name:
        began = time.perf_counter()
        fit(
            spec,
            Path(name),
            progress=lambda what, *_: times.setdefault(what, []).append(time.perf_counter()),
            inputs=loaded,
        )
        whole = time.perf_counter() - began
        sizes = {file.name: file.stat().st_size for file in Path(name).iterdir()}
    steps = [median(b - a for a, b in pairwise(stage)) for stage in times.values()]
    # A run with one evaluation has two, at the start and at the end; everything but the steps grows with their number.
    more = (plan.shared.evaluations + 1) / 2
    assert plan.shared.steps is not None
    seconds = plan.shared.steps * sum(steps) + more * max(0.0, whole - STEPS * sum(steps))
    size = sum(sizes.values()) + (more - 1) * sizes["records.jsonl"]
    return SweepCost(method, plan.runs_per_method, plan.runs_per_method * seconds, plan.runs_per_method * size)
