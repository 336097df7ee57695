"""Every algorithm keeps the promises of crosstail.testing, and the checks find those that do not."""

import numpy as np
import pytest

import crosstail.algorithms
from crosstail import algorithms, discovery, testing

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
from crosstail.algorithms._hparams import Uniform, hp

class Mine(Algorithm):
    """{doc}"""

    def losses(self, z, batch):
        return {{"cross_entropy": {loss}}}
'''
LOSS = "F.cross_entropy(self.head(z), batch.y)"
GOOD = {"doc": "Mine (Me, 2024).", "loss": LOSS}


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


@pytest.mark.parametrize(
    ("loss", "check", "found"),
    [
        (f"0 * {LOSS}", testing.check_learns, "the loss on the training set went from"),
        ("F.cross_entropy(self.head(z), batch.y.clamp(max=1))", testing.check_beats_chance, r"worst pair .* 0\.00"),
        (f"(1 + random.random()) * {LOSS}", testing.check_deterministic, "two runs with the same seed differ"),
        (
            f"{LOSS} / (batch.domain < 5).all()",
            *(testing.check_absent_pairs_and_many_domains, r"is NaN|is (inf|nan) at the first step"),
        ),
        (
            "F.cross_entropy(self.head(z[batch.domain > 0]), batch.y[batch.domain > 0])",
            *(testing.check_one_domain, r"with one domain it says|is nan at the first step"),
        ),
        (f"{LOSS} + 0 * batch.x @ torch.ones(6)", testing.check_images, "size"),
    ],
)
def test_a_wrong_loss_is_found(plant, loss, check, found):
    with pytest.raises((AssertionError, RuntimeError), match=found):
        check(plant(loss=loss))


def test_weights_that_ignore_the_seed_are_found(plant):
    name = plant(
        extra="""
    def build(self):
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
    with pytest.raises(AssertionError, match="resumed run ends differently"):
        testing.check_resumes(name)


def test_learning_from_what_is_evaluated_is_found(plant):
    name = plant(
        extra="""
    def scores(self, z, domain=None):
        if not self.training:
            with torch.no_grad():
                self.head.bias += 0.01 * self.head(z).mean(0)
        return self.head(z)
"""
    )
    with pytest.raises(AssertionError, match="the test split changed the"):
        testing.check_test_unseen(name)


@pytest.mark.parametrize(
    ("declared", "scores", "found"),
    [
        ("False", "self.head(z) + domain[:, None]", "uses_domain is False"),
        ("True", "self.head(z)", "uses_domain is True"),
        ("True", "self.head(z) + domain.sum()", "domains of other samples"),
        ("True", "self.head(z) / (domain != 2)[:, None]", "not finite"),
    ],
)
def test_a_wrong_use_of_a_known_domain_is_found(plant, declared, scores, found):
    name = plant(
        extra=f"""
    uses_domain = {declared}

    def scores(self, z, domain=None):
        return self.head(z) if domain is None else {scores}
"""
    )
    with pytest.raises(AssertionError, match=found):
        testing.check_known_domain(name)


def test_a_loss_that_overflows_in_bfloat16_is_found(plant):
    name = plant(loss=f"{LOSS} + 0 * (0 * self.head(z)[0, 0] + 1 + 1e-3 - 1).log()")
    testing.check_learns(name)
    with pytest.raises(AssertionError, match=r"in bfloat16 .*nan"):
        testing.check_mixed_precision(name)


def test_a_hyperparameter_that_fails_within_its_range_is_found(plant):
    declared = """
    class Hparams(Algorithm.Hparams):
        power: float = hp(1.0, Uniform(300.0, 400.0), {meaning!r})
"""
    name = plant(loss=LOSS, extra=declared.format(meaning=""))
    with pytest.raises(AssertionError, match="power has no meaning"):
        testing.check_hyperparameters(name)
    name = plant(
        loss="F.cross_entropy(self.head(z), batch.y) * 10**self.hparams.power", extra=declared.format(meaning="x")
    )
    with pytest.raises((AssertionError, RuntimeError, OverflowError)):
        testing.check_hyperparameters(name)


@pytest.mark.parametrize("name", [name for name in NAMES if name not in ("da", "boda", "boda_m")])
def test_boda_is_added_to_it_or_it_says_why_not(name):
    if name in ("erm", "crt") or algorithms.find(name).alone:
        with pytest.raises(ValueError, match=f"boda\\+{name}: "):
            algorithms.find(f"boda+{name}")
    else:
        testing.check_beats_chance(f"boda+{name}")


def test_separable_vectors_have_the_counts_that_were_asked_for(tmp_path):
    testing.save_separable(tmp_path / "v.npz", [[7, 0, 3], [1, 2, 9]], num_features=4)
    with np.load(tmp_path / "v.npz") as arrays:
        train = arrays["split"] == "train"
        pairs = list(zip(arrays["domain"][train].tolist(), arrays["y"][train].tolist(), strict=True))
        found = [[pairs.count((d, c)) for c in range(3)] for d in range(2)]
        assert found == [[7, 0, 3], [1, 2, 9]] and arrays["x"].shape == (22 + 30 + 48, 4)
