"""MLDG against its formula, one domain after another."""

import pytest
import torch
from torch import nn

from crosstail import algorithms
from crosstail.algorithms import Task
from crosstail.backbones import Backbone


def update_by_hand(by_hand, adam, batch, lr, beta):
    """The gradient of the mean over i of L_i(θ) + β L_j(θ − lr ∇L_i(θ)), with ∇L_i as a constant."""
    domains = batch.domain.unique().tolist()

    def loss(d, p):
        rows = batch.domain == d
        return by_hand.cross_entropy(by_hand.linear("head", by_hand.features(batch.x[rows], p), p), batch.y[rows])

    circle = [domains[k] for k in torch.randperm(len(domains)).tolist()]
    summed, own, other = dict.fromkeys(by_hand.p, 0.0), [], []
    for k, i in enumerate(circle):
        j = circle[(k + 1) % len(circle)]
        own.append(loss(i, by_hand.p))
        first = by_hand.gradients(own[-1], "")
        moved = {name: (p - lr * first[name]).detach().requires_grad_() for name, p in by_hand.p.items()}
        other.append(beta * loss(j, moved))
        second = dict(zip(moved, torch.autograd.grad(other[-1], list(moved.values())), strict=True))
        summed = {name: value + first[name] + second[name] for name, value in summed.items()}
    by_hand.p = adam.step(by_hand.p, {name: value / len(domains) for name, value in summed.items()})
    return {"cross_entropy": sum(own) / len(own), "another_domain": sum(other) / len(other)}


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("domains", [(0, 1, 2), (0, 2), tuple(range(12))])
def test_updates_are_those_of_the_formula(steps, domains, tiny, samples, train, hand, hand_adam):
    batches = [samples(seed, domains) for seed in range(steps)]
    algorithm = tiny("mldg", [[9, 9, 9]] * 12, lr=0.2, weight_decay=0.1, beta=0.7)
    by_hand, adam = hand(algorithm), hand_adam(0.2, weight_decay=0.1)
    terms = train(algorithm, batches, seed=5)
    torch.manual_seed(5)
    for batch, found in zip(batches, terms, strict=True):
        expected = update_by_hand(by_hand, adam, batch, 0.2, 0.7)
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert found[key].item() == pytest.approx(value.item(), rel=1e-9), key
    by_hand.assert_equal(algorithm)


def test_running_statistics_are_those_of_the_features_before_the_steps(samples, train):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, momentum=None), nn.ReLU())
    algorithm = algorithms.build("mldg", Backbone(layers, 5), Task(torch.ones(3, 3)), {"lr": 1.0}).double().train()
    batch = samples(0)
    with torch.no_grad():
        expected = torch.stack([layers[0](part.x).mean(0) for part in batch.parts()]).mean(0)
    train(algorithm, [batch])
    torch.testing.assert_close(layers[1].running_mean, expected)
    assert layers[1].num_batches_tracked == 3


def test_boda_remembers_the_features_before_the_steps(tiny, samples, train):
    algorithm, alone, batch = tiny("boda+mldg", lr=1.0), tiny("boda"), samples(0)
    with torch.no_grad():
        alone.losses(alone.backbone(batch.x), batch)
    (terms,) = train(algorithm, [batch])
    assert list(terms) == ["cross_entropy", "alignment", "another_domain"]
    torch.testing.assert_close(algorithm.criterion.statistics.mean, alone.criterion.statistics.mean)
    assert torch.equal(algorithm.criterion.statistics.counts, alone.criterion.statistics.counts)
