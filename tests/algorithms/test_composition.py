"""BoDA combined with another algorithm: loss terms, hyperparameters, and invalid combinations."""

import pytest
import torch

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch

COUNTS = torch.tensor([[40, 3, 9], [1, 25, 0]])


def build(name, counts=COUNTS, **hparams):
    torch.manual_seed(0)
    return algorithms.build(name, backbones.build("mlp", (4,), 5), Task(counts), hparams).train()


def make_batch():
    torch.manual_seed(1)
    return DomainBatch(torch.randn(8, 4), torch.tensor([0, 0, 1, 2, 0, 1, 1, 1]), torch.arange(8) // 4)


def losses(algorithm):
    batch = make_batch()
    return {name: term.item() for name, term in algorithm.losses(algorithm.backbone(batch.x), batch).items()}


def test_it_has_the_terms_of_both():
    found = losses(build("boda+coral", gamma=0.3, weight=0.7))
    assert found == losses(build("boda", weight=0.7)) | losses(build("coral", gamma=0.3))
    assert list(found) == ["cross_entropy", "coral", "alignment"]


def test_it_has_the_hyperparameters_of_both():
    algorithm = build("boda_m+coral", gamma="0.3", nu=0.5)
    assert (algorithm.hparams.gamma, algorithm.hparams.nu, algorithm.hparams.lr) == (0.3, 0.5, 1e-3)
    with pytest.raises(ValueError, match="unknown hyperparameter 'nu'"):
        build("da+coral", nu=0.5)


def test_its_updates_are_those_of_the_sum():
    algorithm, other = build("boda+coral", lr=0.01), build("boda+coral", lr=0.01)
    algorithm.update(make_batch(), algorithm.optimizers(), torch.Tensor.backward)
    adam, batch = torch.optim.Adam(other.parameters(), lr=0.01), make_batch()
    sum(other.losses(other.backbone(batch.x), batch).values()).backward()
    adam.step()
    assert all(torch.equal(a, b) for a, b in zip(algorithm.parameters(), other.parameters(), strict=True))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("coral+boda", "only the terms of da, boda and boda_m can be added"),
        ("boda+da", "both have an alignment term"),
        ("boda+corall", "unknown algorithm 'corall': did you mean 'coral'"),
        ("boda+coral+erm", "unknown algorithm 'coral\\+erm'"),
        ("boda+", "unknown algorithm ''"),
    ],
)
def test_what_cannot_be_composed_is_said(name, message):
    with pytest.raises(ValueError, match=message):
        algorithms.find(name)


def test_a_method_that_compares_domains_needs_two_with_training_data():
    for name in ("coral", "boda+coral"):
        with pytest.raises(ValueError, match="needs 2 that have training data; the data have 1: use"):
            build(name, torch.tensor([[4, 5, 0], [0, 0, 0]]))


def test_a_hyperparameter_of_both_is_refused(tmp_path):
    source = '''
from dataclasses import dataclass
from crosstail.algorithms._hparams import hp
from crosstail.algorithms.erm import ERM

class Mine(ERM):
    """Mine (Me, 2024)."""

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        nu: float = hp(1.0, None, "something else")
'''
    (tmp_path / "a+b.py").write_text(source)
    assert algorithms.find(f"{tmp_path}/a+b.py").__name__ == "Mine"
    with pytest.raises(ValueError, match="both have a hyperparameter 'nu'"):
        algorithms.find(f"boda+{tmp_path}/a+b.py")
