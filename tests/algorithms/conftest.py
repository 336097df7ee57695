"""Fixtures for algorithms that override `update`: tiny models and batches in float64, and a hand-written Adam."""

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


class HandAdam:
    """Adam with weight decay as Kingma and Ba (2015) write it, on a dictionary of parameters."""

    def __init__(self, lr, betas=(0.9, 0.999), weight_decay=0.0):
        self.lr, self.betas, self.weight_decay, self.state = lr, betas, weight_decay, {}

    def step(self, parameters, gradients):
        """The parameters after a step along the gradients of those that have one."""
        stepped = dict(parameters)
        for name, g in gradients.items():
            p = parameters[name].detach()
            g = g.detach() + self.weight_decay * p
            t, m, v = self.state.get(name, (0, 0.0, 0.0))
            t, m, v = t + 1, self.betas[0] * m + (1 - self.betas[0]) * g, self.betas[1] * v + (1 - self.betas[1]) * g**2
            self.state[name] = t, m, v
            direction = (m / (1 - self.betas[0] ** t)) / ((v / (1 - self.betas[1] ** t)) ** 0.5 + 1e-8)
            stepped[name] = (p - self.lr * direction).requires_grad_()
        return stepped


class Hand:
    """A copy of an algorithm's parameters, with the backbone and the classifier written out."""

    def __init__(self, algorithm):
        self.p = {name: value.detach().clone().requires_grad_() for name, value in algorithm.named_parameters()}

    def features(self, x, p=None):
        p = p or self.p
        return torch.relu(x @ p["backbone.layers.0.weight"].T + p["backbone.layers.0.bias"])

    def linear(self, layer, z, p=None):
        p = p or self.p
        return z @ p[f"{layer}.weight"].T + p[f"{layer}.bias"]

    def gradients(self, loss, *layers):
        """Of the parameters whose names start with one of these words."""
        names = [name for name in self.p if name.startswith(layers)]
        return dict(zip(names, torch.autograd.grad(loss, [self.p[n] for n in names], retain_graph=True), strict=True))

    @staticmethod
    def cross_entropy(scores, y):
        """Mean over the samples of log Σ exp(s) − s_y."""
        return sum(torch.logsumexp(s, 0) - s[c] for s, c in zip(scores, y, strict=True)) / len(y)

    def assert_equal(self, algorithm):
        for name, value in algorithm.named_parameters():
            torch.testing.assert_close(value, self.p[name], rtol=1e-9, atol=1e-10, msg=lambda m, n=name: f"{n}: {m}")


@pytest.fixture
def hand_adam():
    return HandAdam


@pytest.fixture
def hand():
    return Hand
