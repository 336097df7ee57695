"""Every algorithm keeps the promises of crosstail.testing, and the checks find those that do not."""

import numpy as np
import pytest

import crosstail.algorithms
from crosstail import discovery, testing

NAMES = discovery.names("crosstail.algorithms")


@pytest.mark.parametrize("check", testing.CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_every_algorithm(name, check):
    check(name)


HEAD = '''
import random
import torch
import torch.nn.functional as F
from crosstail.algorithms._algorithm import Algorithm

class Mine(Algorithm):
    """{doc}"""

    def losses(self, z, batch):
        return {{"cross_entropy": {loss}}}
'''
GOOD = {"doc": "Mine (Me, 2024).", "loss": "F.cross_entropy(self.head(z), batch.y)"}


@pytest.fixture
def plant(tmp_path, monkeypatch):
    """Add a file to the algorithms, as a user does."""
    monkeypatch.setattr(crosstail.algorithms, "__path__", [*crosstail.algorithms.__path__, str(tmp_path)])
    planted = iter(range(100))

    def add(extra="", **changes):
        name = f"mine_{tmp_path.name}_{next(planted)}"
        (tmp_path / f"{name}.py").write_text(HEAD.format(**{**GOOD, **changes}) + extra)
        return name

    return add


def test_a_users_own_algorithm_passes(plant):
    name = plant()
    assert name in discovery.names("crosstail.algorithms")
    testing.check_algorithm(name)


@pytest.mark.parametrize("doc", ["", "Mine (Me).", "Mine, from 2024.", "Mine (Me, 20244)."])
def test_a_docstring_without_a_paper_is_found(plant, doc):
    with pytest.raises(AssertionError, match="no paper with its year"):
        testing.check_algorithm(plant(doc=doc))


def test_an_algorithm_that_does_not_learn_is_found(plant):
    name = plant(loss="0 * F.cross_entropy(self.head(z), batch.y)")
    with pytest.raises(AssertionError, match="the loss on the training set went from"):
        testing.check_learns(name)


def test_an_algorithm_that_gives_up_a_class_is_found(plant):
    name = plant(loss="F.cross_entropy(self.head(z), batch.y.clamp(max=1))")
    with pytest.raises(AssertionError, match=r"a pair has 0\.00"):
        testing.check_beats_chance(name)


def test_randomness_without_the_seed_is_found(plant):
    name = plant(loss="(1 + random.random()) * F.cross_entropy(self.head(z), batch.y)")
    with pytest.raises(AssertionError, match="two runs with the same seed differ"):
        testing.check_deterministic(name)


def test_weights_that_ignore_the_seed_are_found(plant):
    name = plant(
        extra="""
    def __init__(self, backbone, task, hparams):
        super().__init__(backbone, task, hparams)
        for parameter in self.parameters():
            torch.nn.init.constant_(parameter, 0.5)

    def update(self, batch, optimizers, backward):
        return self.losses(self.backbone(batch.x), batch)
"""
    )
    with pytest.raises(AssertionError, match="two seeds give the same weights"):
        testing.check_deterministic(name)


def test_state_that_is_not_in_the_checkpoint_is_found(plant):
    name = plant(
        loss="self.more() * F.cross_entropy(self.head(z), batch.y)",
        extra="""
    seen = 0

    def more(self):
        self.seen += 1
        return 1 + self.seen
""",
    )
    testing.check_deterministic(name)
    with pytest.raises(AssertionError, match="a continued run ends differently"):
        testing.check_resumes(name)


def test_learning_from_what_is_evaluated_is_found(plant):
    name = plant(
        extra="""
    def forward(self, x):
        z = self.backbone(x)
        if not self.training:
            with torch.no_grad():
                self.head.bias += 0.01 * self.head(z).mean(0)
        return self.head(z)
"""
    )
    with pytest.raises(AssertionError, match="the test split changed the"):
        testing.check_test_unseen(name)


def test_separable_vectors_have_the_counts_that_were_asked_for(tmp_path):
    testing.save_separable(tmp_path / "v.npz", [[7, 0, 3], [1, 2, 9]], num_features=4)
    with np.load(tmp_path / "v.npz") as arrays:
        train = arrays["split"] == "train"
        pairs = list(zip(arrays["domain"][train].tolist(), arrays["y"][train].tolist(), strict=True))
        found = [[pairs.count((d, c)) for c in range(3)] for d in range(2)]
        assert found == [[7, 0, 3], [1, 2, 9]] and arrays["x"].shape == (22 + 30 + 48, 4)
