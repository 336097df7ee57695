"""DANN and CDANN: what the discriminator learns, and how CDANN weighs pairs; test_parity.py has their update rules."""

import pytest
import torch

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

NAMES = ["dann", "cdann"]


@pytest.mark.parametrize("name", NAMES)
def test_the_discriminator_has_an_output_for_every_domain_with_training_data(name, tiny):
    assert tiny(name, [[1, 2, 3], [0, 0, 0], [0, 4, 0]]).discriminator[-1].out_features == 2


def test_the_adversary_hides_the_domain_that_plain_features_show(train):
    """A discriminator that is not fought finds the domain; one that is fought stays at chance, log 2."""
    torch.manual_seed(0)
    domain, y = torch.arange(64) // 32, torch.arange(64) % 2
    x = torch.randn(64, 4) + 6 * torch.stack([domain, y, 0 * y, 0 * y], 1)
    found = {}
    for weight in (0.0, 1.0):
        torch.manual_seed(0)
        hparams = {"adversary": weight, "lr": 0.01, "discriminator_lr": 3e-4}
        algorithm = algorithms.build("dann", backbones.build("mlp", (4,), 16), Task(torch.full((2, 2), 16)), hparams)
        found[weight] = train(algorithm, [DomainBatch(x, y, domain)] * 100)[-1]
        assert found[weight]["cross_entropy"] < 0.1
    assert found[0.0]["discriminator"] < 0.1 and found[1.0]["discriminator"] > 0.5


def cdann_loss(algorithm, errors, y, domain):
    batch = DomainBatch(torch.zeros(len(y), 4), torch.tensor(y), torch.tensor(domain))
    return algorithm.mean(torch.tensor(errors, dtype=torch.float64), batch).item()


def test_cdann_weighs_every_domain_of_a_class_and_every_class_alike(tiny):
    algorithm = tiny("cdann")
    once = cdann_loss(algorithm, [1, 2, 5, 9], [0, 0, 2, 2], [0, 1, 0, 2])
    assert once == pytest.approx(((1 + 2) / 2 + (5 + 9) / 2) / 2)
    often = cdann_loss(algorithm, [1, 0, 2, 2, 5, 9], [0, 0, 0, 0, 2, 2], [0, 0, 0, 1, 0, 2])
    assert often == pytest.approx(once)


def test_cdann_leaves_a_class_of_one_domain_out(tiny):
    algorithm = tiny("cdann")
    assert cdann_loss(algorithm, [1, 2, 100], [0, 0, 1], [0, 1, 1]) == pytest.approx(1.5)
    assert cdann_loss(algorithm, [1, 2, 3], [0, 1, 2], [0, 1, 2]) == 0.0


def test_cdann_without_a_shared_class_trains_on_cross_entropy_alone(tiny, train):
    algorithm, without = tiny("cdann"), tiny("cdann", adversary=0.0)
    batch = DomainBatch(torch.eye(4, dtype=torch.float64), torch.tensor([0, 0, 1, 1]), torch.tensor([0, 0, 1, 1]))
    terms = train(algorithm, [batch])[0]
    train(without, [batch])
    assert terms["adversary"] == terms["discriminator"] == 0
    assert all(torch.equal(a, b) for a, b in zip(algorithm.parameters(), without.parameters(), strict=True))
