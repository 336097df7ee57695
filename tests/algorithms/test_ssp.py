"""SSP: the pretext tasks for images and vectors, when pretraining ends, and resuming during it."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from tests.interruption import stop

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.algorithms.ssp import corrupted, turned
from crosstail.data import DomainBatch
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder

COUNTS = torch.tensor([[40, 3], [1, 25]])
BACKBONES = {"images": ("small_cnn", (3, 6, 6)), "vectors": ("mlp", (40,))}
KINDS = pytest.mark.parametrize("kind", BACKBONES)


def build(name, kind, **hparams):
    torch.manual_seed(0)
    backbone, shape = BACKBONES[kind]
    return algorithms.build(name, backbones.build(backbone, shape, 8), Task(COUNTS), hparams).train()


def make_batch(kind, size=8, shape=None):
    torch.manual_seed(1)
    y = torch.tensor([0, 1]).repeat(size // 2)
    return DomainBatch(torch.randn(size, *(shape or BACKBONES[kind][1])), y, torch.arange(size) * 2 // size)


def seen_by_the_backbone(algorithm):
    seen = []
    algorithm.backbone.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    return seen


def parameters(module):
    return [p.detach().clone() for p in module.parameters()]


def same(before, after):
    return all(torch.equal(a, b) for a, b in zip(before, after, strict=True))


def test_there_are_as_many_answers_as_quarter_turns():
    assert build("ssp", "images").turn_head.out_features == 4


def test_images_are_turned_as_rot90_does():
    x, quarters = torch.randn(12, 3, 5, 5), torch.arange(12) % 4
    found = turned(x, quarters)
    for image, before, q in zip(found, x, quarters.tolist(), strict=True):
        assert torch.equal(image, torch.rot90(before, q, (1, 2)))


@pytest.mark.parametrize(("shape", "possible"), [((3, 6, 6), {0, 1, 2, 3}), ((3, 6, 4), {0, 2})])
def test_the_label_of_an_image_is_by_how_much_it_was_turned(shape, possible):
    algorithm, batch = build("ssp", "images"), make_batch("images", 64, shape)
    seen = seen_by_the_backbone(algorithm)
    term = algorithm.tell_turns(batch.x)
    (x,) = seen
    turns = [
        [q for q in possible if torch.equal(image, torch.rot90(before, q, (1, 2)))]
        for image, before in zip(x, batch.x, strict=True)
    ]
    assert all(len(found) == 1 for found in turns)
    labels = torch.tensor([q for found in turns for q in found])
    assert set(labels.tolist()) == possible
    expected = F.cross_entropy(algorithm.turn_head(algorithm.backbone(x)), labels)
    torch.testing.assert_close(term, expected)


def test_about_60_percent_of_the_values_are_those_of_other_vectors():
    torch.manual_seed(0)
    x = torch.arange(50 * 40.0).reshape(50, 40)
    found = corrupted(x)
    assert torch.equal(found % 40, x % 40)  # each from its own column
    others = found != x
    assert others.float().mean().item() == pytest.approx(0.6 * 49 / 50, abs=0.03)
    rows = (found // 40)[others]
    assert len(rows.unique()) == 50 and rows.mean().item() == pytest.approx(24.5, abs=2)


@KINDS
@pytest.mark.parametrize("name", ["ssp", "boda+ssp"])
def test_first_it_learns_without_labels_and_without_its_classifier(kind, name):
    algorithm, batch = build(name, kind, pretraining=0.3, weight_decay=0.1), make_batch(kind)
    optimizers = algorithm.optimizers()
    pretext = {"images": algorithm.turn_head, "vectors": algorithm.copy_head}[kind]
    algorithm.steps = 10
    for step in range(6):
        algorithm.step = step
        modules = algorithm.backbone, pretext, algorithm.head
        before = [parameters(module) for module in modules]
        terms = algorithm.update(batch, optimizers, torch.Tensor.backward)
        changed = [not same(old, parameters(module)) for old, module in zip(before, modules, strict=True)]
        if step < 3:
            assert list(terms) == ["self_supervision"] and changed == [True, True, False]
        else:
            assert list(terms) == ["cross_entropy", "alignment"][: 1 + (name != "ssp")]
            assert changed == [True, False, True]


@KINDS
def test_labels_change_nothing_at_first(kind):
    after = []
    for flip in (False, True):
        algorithm, batch = build("ssp", kind), make_batch(kind)
        labels = 1 - batch.y if flip else batch.y
        algorithm.update(DomainBatch(batch.x, labels, batch.domain), algorithm.optimizers(), torch.Tensor.backward)
        after.append(parameters(algorithm))
    assert same(*after)


@KINDS
def test_without_pretraining_it_is_erm(kind):
    after = []
    for name, hparams in (("erm", {}), ("ssp", {"pretraining": 0.0})):
        algorithm, batch = build(name, kind, **hparams), make_batch(kind)
        algorithm.update(batch, algorithm.optimizers(), torch.Tensor.backward)
        after.append(parameters(algorithm.backbone) + parameters(algorithm.head))
    assert same(*after)


@pytest.mark.parametrize(("kind", "share"), [("images", 0.1), ("vectors", 0.93)])
def test_it_learns_to_answer(kind, share):
    """Images that are bright above; vectors whose 40 values say the same three things again and again."""
    algorithm, batch = build("ssp", kind, pretraining=1.0, lr=0.01), make_batch(kind, 32)
    x = batch.x + 3 * (torch.arange(6) < 2)[:, None] if kind == "images" else batch.x[:, :3] @ torch.randn(3, 40)
    batch, optimizers = DomainBatch(x, batch.y, batch.domain), algorithm.optimizers()
    terms = [algorithm.update(batch, optimizers, torch.Tensor.backward)["self_supervision"] for _ in range(60)]
    assert sum(terms[-10:]) < share * sum(terms[:10])


@KINDS
def test_a_run_that_is_stopped_while_it_learns_without_labels_ends_as_one_that_is_not(tmp_path, kind):
    generator = np.random.default_rng(0)
    y, domain, split = np.tile([0, 1], 24), np.repeat([0, 1], 24), np.tile(np.repeat(["train", "val", "test"], 8), 2)
    if kind == "images":
        x = generator.integers(0, 256, (48, 6, 6, 3), dtype=np.uint8)
    else:
        x = generator.normal(size=(48, 40)).astype(np.float32)
    np.savez(tmp_path / "made.npz", x=x, y=y, domain=domain, split=split)
    short = {"steps": 10, "batch_size": 4, "evaluations": 5, "hparams": {"pretraining": 0.7}}
    spec = RunSpec(
        dataset=str(tmp_path / "made.npz"), algorithm="boda+ssp", backbone=BACKBONES[kind][0], width=8, **short
    )
    train_run(spec, tmp_path / "whole")
    for step in (3, 6, 9):
        stop(spec, tmp_path / "stopped", "stage 1", step)
        torch.manual_seed(step)
    train_run(spec, tmp_path / "stopped")
    whole, stopped = (RunFolder(tmp_path / name) for name in ("whole", "stopped"))
    expected, found = whole.load("model.pt"), stopped.load("model.pt")
    assert all(torch.equal(found[key], expected[key]) for key in expected)
    assert [r.losses for r in stopped.records()] == [r.losses for r in whole.records()]
    assert ["self_supervision" in r.losses for r in whole.records()] == [False, True, True, True, True, False]
