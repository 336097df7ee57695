"""The methods for imbalanced classes: counts per domain, absent pairs; test_parity.py has their update rules."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch
from crosstail.losses.tails import ldam_margins
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder

SMALL = [[400, 3, 0, 9], [1, 25, 70, 0], [0, 0, 0, 0]]
MANY = [[1 + (7 * d + 5 * c) % 11 * 30 * (d != c) for c in range(3)] for d in range(12)]
TABLES = pytest.mark.parametrize("counts", [SMALL, MANY], ids=["small", "12 domains"])
NAMES = [
    "bsoftmax",
    "cb_loss",
    "crt",
    "focal",
    "ldam",
    "logit_adjustment",
    "resample",
    "reweight",
    "sqrt_reweight",
    "ssp",
    "vs_loss",
    "seesaw",
    "label_aware_smoothing",
]


def build(name, counts=SMALL, **hparams):
    torch.manual_seed(0)
    return algorithms.build(name, backbones.build("mlp", (4,), 5), Task(torch.tensor(counts)), hparams).train()


def make_batch(counts=SMALL):
    """Two samples of every pair that there is."""
    torch.manual_seed(1)
    pairs = [(d, c) for d, row in enumerate(counts) for c, n in enumerate(row) if n for _ in range(2)]
    domain, y = (torch.tensor(values) for values in zip(*pairs, strict=True))
    return DomainBatch(torch.randn(len(pairs), 4), y, domain)


def test_ldam_predicts_by_cosines():
    algorithm, batch = build("ldam"), make_batch()
    with torch.no_grad():
        z = algorithm.backbone(batch.x)
        expected = 30 * F.cosine_similarity(z[:, None], algorithm.head.weight, dim=2)
        torch.testing.assert_close(algorithm(batch.x), expected)


def test_ldam_gives_the_rarest_pair_the_largest_margin():
    counts = torch.tensor([[81, 16], [0, 625]])  # none of them 1, whose margin would need no scaling
    margins = ldam_margins(counts, 0.4)
    expected = [[0.4 * 2 / 3, 0.4], [0.0, 0.4 * 2 / 5]]  # in proportion to n^(-1/4): 1/3, 1/2, none, 1/5
    torch.testing.assert_close(margins, torch.tensor(expected))


@TABLES
def test_weights_have_the_scale_that_they_say(counts):
    n = torch.tensor(counts)
    for name in ("reweight", "sqrt_reweight", "ldam"):
        weights = build(name, counts).weights
        of_domains = (n * weights).sum(1) / n.sum(1).clamp(min=1)
        torch.testing.assert_close(of_domains, (n.sum(1) > 0).float())
    torch.testing.assert_close(build("cb_loss", counts).weights.sum(1), (n > 0).sum(1).float())


@pytest.mark.parametrize("name", ["bsoftmax", "logit_adjustment"])
def test_a_domain_says_nothing_about_a_class_that_it_lacks(name):
    algorithm, batch = build(name), make_batch()
    first = DomainBatch(batch.x[:6], batch.y[:6], batch.domain[:6])
    algorithm.losses(algorithm.backbone(first.x), first)["cross_entropy"].backward()
    assert all(p.grad.isfinite().all() for p in algorithm.parameters())
    assert (algorithm.head.weight.grad.abs().sum(1) > 0).tolist() == [n > 0 for n in SMALL[0]]


def loss(algorithm, batch):
    return algorithm.losses(algorithm.backbone(batch.x), batch)["cross_entropy"].item()


def test_what_is_the_same_as_what():
    batch = make_batch()
    assert loss(build("logit_adjustment"), batch) == loss(build("bsoftmax"), batch)
    plain = loss(build("erm"), batch)
    assert loss(build("logit_adjustment", tau=0.0), batch) == plain  # although log 0 is in the table
    assert loss(build("focal", gamma=0.0), batch) == pytest.approx(plain, rel=1e-6)
    assert [loss(build(name), batch) for name in ("crt", "resample")] == [plain, plain]
    same = [[5, 5, 5, 5]] * 3
    for name in ("bsoftmax", "logit_adjustment", "cb_loss", "reweight", "sqrt_reweight"):
        assert loss(build(name, same), batch) == pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize("gamma", [0.5, 1.0, 5.0])
def test_focal_has_no_gradient_where_nothing_is_wrong(gamma):
    algorithm = build("focal", gamma=gamma)
    algorithm.head = torch.nn.Identity()
    scores = torch.tensor([[200.0, 0.0, 0.0, 0.0], [0.0, 200.0, 0.0, 0.0]], requires_grad=True)
    batch = DomainBatch(torch.zeros(2, 4), torch.tensor([0, 0]), torch.tensor([0, 0]))
    term = algorithm.losses(scores, batch)["cross_entropy"]
    term.backward()
    assert term.item() == pytest.approx(100)
    torch.testing.assert_close(scores.grad, torch.tensor([[0.0, 0, 0, 0], [-0.5, 0.5, 0, 0]]))


@pytest.mark.parametrize("beta", [0.0, 1.0, 1.5, -0.1])
def test_beta_is_between_0_and_1(beta):
    with pytest.raises(ValueError, match=rf"hyperparameter beta is {beta}, expected a number between 0 and 1"):
        build("cb_loss", beta=beta)


def test_the_prior_is_one_of_two():
    with pytest.raises(ValueError, match="hyperparameter prior is 'class', expected one of domain, global"):
        build("logit_adjustment", prior="class")


@pytest.mark.parametrize("name", NAMES)
def test_a_loss_in_half_precision_is_near_the_exact_one(name):
    algorithm, batch = build(name), make_batch()
    exact = loss(algorithm, batch)
    with torch.autocast("cpu", torch.bfloat16):
        term = algorithm.losses(algorithm.backbone(batch.x), batch)["cross_entropy"]
    assert term.dtype == torch.float32 and term.item() == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_tables_of_counts_are_not_in_the_checkpoint_but_move_with_the_model(name):
    algorithm, plain = build(name), build("erm")
    heads = {"turn_head.weight", "turn_head.bias", "copy_head.weight", "copy_head.bias"} if name == "ssp" else set()
    bias = {"head.bias"} if name == "ldam" else set()
    assert set(algorithm.state_dict()) == set(plain.state_dict()) - bias | heads
    batch = make_batch()
    meta = algorithm.to("meta")
    assert meta.losses(torch.empty(len(batch), 5, device="meta"), batch.to("meta"))["cross_entropy"].is_meta


@pytest.mark.parametrize("name", [name for name in NAMES if name != "crt"])
def test_bodas_term_can_be_added(name):
    batch = make_batch()
    algorithm, own = build(f"boda+{name}", weight=0.7, nu=0.6), build(name)
    terms = algorithm.losses(algorithm.backbone(batch.x), batch)
    assert list(terms) == ["cross_entropy", "alignment"] and terms["alignment"].item() > 0
    assert terms["cross_entropy"].item() == loss(own, batch)
    assert algorithm.class_balanced == own.class_balanced


@pytest.fixture
def spec(tmp_path):
    save_separable(tmp_path / "v.npz", [[30, 1, 5], [2, 30, 0]])
    short = {"steps": 6, "batch_size": 12, "evaluations": 2}
    return RunSpec(dataset=str(tmp_path / "v.npz"), algorithm="erm", backbone="mlp", width=8, **short)


@pytest.mark.parametrize("name", ["resample", "boda+resample"])
def test_resample_trains_on_balanced_batches(spec, tmp_path, monkeypatch, name):
    seen = []
    resample = algorithms.find("resample")
    original = resample.losses

    def losses(self, z, batch):
        seen.extend(batch.by_domain(batch.y))
        return original(self, z, batch)

    monkeypatch.setattr(resample, "losses", losses, raising=False)
    train_run(replace(spec, algorithm=name), tmp_path / "run")
    assert [y.bincount(minlength=3).tolist() for y in seen] == [[4, 4, 4], [6, 6, 0]] * 6


def test_crt_is_a_second_stage(spec, tmp_path):
    train_run(replace(spec, algorithm="crt"), tmp_path / "crt")
    train_run(replace(spec, algorithm="erm", second_stage="retrain"), tmp_path / "retrained")
    crt, retrained = (RunFolder(tmp_path / folder).weights() for folder in ("crt", "retrained"))
    assert crt.keys() == retrained.keys() and all(torch.equal(crt[key], retrained[key]) for key in crt)
    assert [r.stage for r in RunFolder(tmp_path / "crt").records()] == [1, 1, 1, 2, 2, 2]
