import pytest
import torch

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

THREE = [[40, 3, 9], [1, 25, 4], [7, 2, 30]]


@pytest.fixture
def tiny():
    """tiny(name, counts, seed, **hparams): 4 inputs, 5 features, by default 3 domains and 3 classes."""

    def build(name, counts=THREE, seed=0, **hparams):
        torch.manual_seed(seed)
        backbone = backbones.build("mlp", (4,), 5)
        return algorithms.build(name, backbone, Task(torch.tensor(counts)), hparams).double().train()

    return build


@pytest.fixture
def samples():
    """samples(seed, domains): a batch with 4 samples of each domain."""

    def make(seed, domains=(0, 1, 2)):
        generator = torch.Generator().manual_seed(seed)
        x = 2 * torch.randn(4 * len(domains), 4, generator=generator, dtype=torch.float64)
        y = torch.randint(3, (4 * len(domains),), generator=generator)
        return DomainBatch(x, y, torch.tensor(domains).repeat_interleave(4))

    return make


@pytest.fixture
def train():
    """train(algorithm, batches, seed): the terms of an update on each batch, after seeding torch."""

    def run(algorithm, batches, seed=5):
        optimizers = algorithm.optimizers()
        torch.manual_seed(seed)
        return [algorithm.update(batch, optimizers, torch.Tensor.backward) for batch in batches]

    return run
