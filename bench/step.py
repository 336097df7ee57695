"""A training step of `boda`, statistics included, beside one of `erm`: small CNN of the paper, 2 × 64 images."""

import torch

from bench._rows import Row
from bench._timing import interleave
from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch


def run() -> list[Row]:
    torch.manual_seed(0)
    batch = DomainBatch(torch.rand(128, 3, 32, 32), torch.randint(10, (128,)), torch.arange(128) // 64)
    counts = torch.tensor([[1000 // (c + 1) for c in range(10)], [1000 // (10 - c) for c in range(10)]])
    steps = {}
    for name in ("erm", "boda", "boda_m"):
        algorithm = algorithms.build(name, backbones.build("small_cnn", (3, 32, 32)), Task(counts))
        optimizers = algorithm.optimizers()
        steps[name] = lambda a=algorithm, o=optimizers: a.update(batch, o, torch.Tensor.backward)
    seconds = interleave(steps, repeats=7)
    return [
        Row(f"step of {name}, small CNN", seconds[name], "a step of erm", seconds[name] / seconds["erm"], 1.05)
        for name in ("boda", "boda_m")
    ]
