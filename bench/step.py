"""A training step of each algorithm compared with `erm`: small CNN, 3 × 24 images; limits scale with its passes.

Many begin with a phase of their own, such as a warm-up, so a step at the beginning and one near the end are measured,
and the slower of them counts.
"""

from functools import partial
from typing import Any

import torch

from bench._rows import Row
from bench._timing import interleave
from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

OURS = 1.05  # BoDA's term and statistics are cheap compared with a CNN
OTHERS = 1.15
PHASES = {"first": 0, "late": 900}  # of 1,000 steps


def run() -> list[Row]:
    torch.manual_seed(0)
    domains, each = 3, 24
    size = domains * each
    batch = DomainBatch(torch.rand(size, 3, 32, 32), torch.randint(10, (size,)), torch.arange(size) // each)
    counts = torch.tensor([[1000 // (1 + (c + d) % 10) for c in range(10)] for d in range(domains)])
    entries = [entry for entry in algorithms.catalogue() if entry.passes]
    steps: dict[str, Any] = {}
    for entry in entries:
        for phase, step in PHASES.items():
            algorithm = algorithms.build(entry.name, backbones.build("small_cnn", (3, 32, 32)), Task(counts)).train()
            algorithm.step, algorithm.steps = step, 1000
            steps[f"{entry.name} {phase}"] = partial(
                algorithm.update, batch, algorithm.optimizers(), torch.Tensor.backward
            )
    seconds = interleave(steps, repeats=5)
    erm = min(seconds[f"erm {phase}"] for phase in PHASES)
    rows = []
    for entry in entries[1:]:
        phase = max(PHASES, key=lambda phase: seconds[f"{entry.name} {phase}"])
        found = seconds[f"{entry.name} {phase}"]
        name = f"{phase} step of {entry.name}, {entry.passes:g} pass{'' if entry.passes == 1 else 'es'}"
        limit = (OURS if entry.family == "ours" else OTHERS) * entry.passes
        rows.append(Row(name, found, "a step of erm", found / erm, limit))
    return rows
