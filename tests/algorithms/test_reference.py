"""`boda@reference` against the update rule of the authors' public code, by loops, in float64.

Every `refresh` steps a full pass gives the pairs' means, blended as 0.8 new + 0.2 old (the first is taken as it is).
From `warmup` on, the loss has −Σ log p / n over all n (sample, positive) combinations, where
log p = s_p − log Σ_{q ≠ own} exp(s_q) and s_q = −(N_q / N_own)^ν d(z, μ_q) / N_own / T. From the start it has the mean
over pairs of domains of the squared differences of their means and covariances (averaged over entries).
"""

import math

import pytest
import torch
import torch.nn.functional as F

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch
from crosstail.losses import PairStatistics

COUNTS = [[6, 2, 3], [1, 5, 0], [2, 4, 4]]
WEIGHT, NU, TEMPERATURE, GAMMA, MOMENTUM, LR = 0.1, 0.5, 1.0, 1.0, 0.2, 1e-3


def make_data():
    torch.manual_seed(3)
    pairs = [(d, c) for d, row in enumerate(COUNTS) for c, n in enumerate(row) for _ in range(n)]
    domain, y = (torch.tensor(values) for values in zip(*pairs, strict=True))
    return torch.randn(len(pairs), 4, dtype=torch.float64) + y[:, None], y, domain


def make_batch(step, x, y, domain):
    generator = torch.Generator().manual_seed(step)
    rows = [(domain == d).nonzero().flatten() for d in range(3)]
    chosen = torch.cat([r[torch.randint(len(r), (4,), generator=generator)] for r in rows])
    return DomainBatch(x[chosen], y[chosen], domain[chosen])


def macro_alignment(parts):
    """Mean over pairs of domains of the mean squared differences of their means and covariances."""
    found = []
    for i in range(len(parts)):
        for j in range(i + 1, len(parts)):
            means = [part.mean(0) for part in (parts[i], parts[j])]
            covariances = [part.T.cov() for part in (parts[i], parts[j])]
            found.append((means[0] - means[1]).square().mean() + (covariances[0] - covariances[1]).square().mean())
    return sum(found) / len(found)


def alignment(z, batch, centroids):
    terms = []
    for features, c, d in zip(z, batch.y.tolist(), batch.domain.tolist(), strict=True):
        own = COUNTS[d][c]
        similarity = {
            pair: -((COUNTS[pair[0]][pair[1]] / own) ** NU) * (features - centre).norm() / own / TEMPERATURE
            for pair, centre in centroids.items()
        }
        denominator = sum(s.exp() for pair, s in similarity.items() if pair != (d, c)).log()
        terms += [denominator - s for (e, k), s in similarity.items() if k == c and e != d]
    return sum(terms) / len(terms)


def train_by_hand(network, steps, warmup, refresh):
    """The authors' loop: refresh, loss, one step of Adam on everything."""
    x, y, domain = make_data()
    adam, centroids = torch.optim.Adam(network.parameters(), lr=LR), {}
    backbone, head = network
    for step in range(steps):
        if step and step % refresh == 0:
            z = backbone(x).detach()
            for d, row in enumerate(COUNTS):
                for c, n in enumerate(row):
                    if n:
                        new = z[(domain == d) & (y == c)].mean(0)
                        old = centroids.get((d, c), new)
                        centroids[d, c] = new if step == refresh else (1 - MOMENTUM) * new + MOMENTUM * old
        batch = make_batch(step, x, y, domain)
        z = backbone(batch.x)
        parts = [z[batch.domain == d] for d in range(3)]
        loss = sum(F.cross_entropy(head(part), batch.y[batch.domain == d]) for d, part in enumerate(parts)) / 3
        loss = loss + GAMMA * macro_alignment(parts)
        if step >= warmup:
            loss = loss + WEIGHT * alignment(z, batch, centroids)
        adam.zero_grad()
        loss.backward()
        adam.step()
    return [parameter.detach() for parameter in network.parameters()]


def build(**hparams):
    torch.manual_seed(0)
    backbone = backbones.build("mlp", (4,), 5)
    return algorithms.build("boda@reference", backbone, Task(torch.tensor(COUNTS)), hparams).double().train()


def train(steps, **hparams):
    """Our algorithm in a loop that makes the full passes it asks for."""
    algorithm = build(**hparams)
    x, y, domain = make_data()
    optimizers, algorithm.steps = algorithm.optimizers(), steps
    for step in range(steps):
        algorithm.step = step
        if algorithm.refresh_due(step):
            statistics = algorithm.statistics().double()
            statistics.update(algorithm.backbone(x), y, domain)
            assert isinstance(statistics, PairStatistics)
            algorithm.refresh(statistics)
        algorithm.update(make_batch(step, x, y, domain), optimizers, torch.Tensor.backward)
    return [*algorithm.backbone.parameters(), *algorithm.head.parameters()]


@pytest.mark.parametrize("steps", [1, 2, 5, 12])
def test_its_updates_are_those_of_the_authors_code(steps):
    start = build()
    expected = train_by_hand(torch.nn.ModuleList([start.backbone, start.head]), steps, warmup=5, refresh=2)
    found = train(steps, warmup=5, refresh=2)
    for ours, theirs in zip(found, expected, strict=True):
        torch.testing.assert_close(ours.detach(), theirs, rtol=1e-9, atol=1e-11)


def test_its_defaults_are_those_of_the_authors_registry():
    found = algorithms.values(algorithms.find("boda@reference").Hparams())
    expected = {"lr": 1e-3, "weight_decay": 0.0, "weight": 0.1, "nu": 0.5, "temperature": 1.0, "gamma": 1.0}
    expected |= {"warmup": 500, "refresh": 120, "momentum": 0.2, "per_positive": True, "rescaled": False}
    assert {name: found[name] for name in expected} == expected


def test_a_warmup_that_ends_before_the_first_pass_does_not_train_against_zeros():
    """There, theirs would: our first pass is made when the term takes effect."""
    algorithm = build(warmup=1, refresh=3)
    assert [step for step in range(8) if algorithm.refresh_due(step)] == [1, 3, 6]
    x, y, domain = make_data()
    statistics = algorithm.statistics().double()
    statistics.update(algorithm.backbone(x), y, domain)
    algorithm.refresh(statistics)
    algorithm.step = 1
    batch = make_batch(0, x, y, domain)
    z = algorithm.backbone(batch.x)
    centroids = {(d, c): statistics.mean[d, c] for d in range(3) for c in range(3) if COUNTS[d][c]}
    expected = WEIGHT * alignment(z, batch, centroids).item()
    assert math.isclose(algorithm.losses(z, batch)["alignment"].item(), expected, rel_tol=1e-9)
