"""A training step of each algorithm compared with `erm`: small CNN, 3 × 24 images; limits scale with its passes."""

from functools import partial

import torch

from bench._rows import Row
from bench._timing import interleave
from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

OURS = 1.05  # BoDA's term and statistics are cheap compared with a CNN
OTHERS = 1.15


def run() -> list[Row]:
    torch.manual_seed(0)
    domains, each = 3, 24
    size = domains * each
    batch = DomainBatch(torch.rand(size, 3, 32, 32), torch.randint(10, (size,)), torch.arange(size) // each)
    counts = torch.tensor([[1000 // (1 + (c + d) % 10) for c in range(10)] for d in range(domains)])
    entries = algorithms.catalogue()
    steps = {}
    for entry in entries:
        algorithm = algorithms.build(entry.name, backbones.build("small_cnn", (3, 32, 32)), Task(counts)).train()
        algorithm.step, algorithm.steps = 0, 1000
        steps[entry.name] = partial(algorithm.update, batch, algorithm.optimizers(), torch.Tensor.backward)
    seconds = interleave(steps, repeats=7)
    return [
        Row(
            f"step of {entry.name}, {entry.passes:g} pass{'' if entry.passes == 1 else 'es'}",
            seconds[entry.name],
            "a step of erm",
            seconds[entry.name] / seconds["erm"],
            (OURS if entry.family == "ours" else OTHERS) * entry.passes,
        )
        for entry in entries
        if entry.name != "erm"
    ]
