"""Frozen features: computed once, found again, and never taken from a damaged or foreign file."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from torch import nn

from crosstail import data
from crosstail.backbones import Backbone
from crosstail.data import DomainDataset, to_input
from crosstail.training import RunSpec, embedding
from crosstail.training.embedding import cache_folder, embed
from crosstail.training.run import load_inputs


class Counting(Backbone):
    """A small backbone that counts the images that it has seen."""

    def __init__(self, weights="first", num_features=5, seed=0):
        torch.manual_seed(seed)
        super().__init__(nn.Sequential(nn.Flatten(), nn.Linear(48, num_features)), num_features)
        self.weights, self.seen = weights, 0

    def forward(self, x):
        self.seen += len(x)
        return super().forward(x)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def images(n=10, seed=0):
    x = np.random.default_rng(seed).integers(0, 256, (n, 4, 4, 3), dtype=np.uint8)
    zeros = np.zeros(n, np.int64)
    return DomainDataset("made", x, zeros, zeros, np.full(n, "train"), ("a",), ("b",))


def test_features_are_those_of_the_backbone_in_evaluation_mode(cache):
    dataset, backbone = images(), Counting()
    backbone.layers.append(nn.Dropout(0.9))
    backbone.train()
    found = embed(dataset, backbone, batch_size=4)
    with torch.no_grad():
        expected = backbone.layers[:2](to_input(dataset.x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert found.dtype == np.float32


def test_the_second_call_does_not_run_the_backbone(cache):
    dataset, backbone = images(), Counting()
    first = embed(dataset, backbone)
    assert backbone.seen == 10 and len(list(cache.iterdir())) == 1
    again = Counting(seed=1)  # other numbers under the same name: found in the cache, not computed
    assert (embed(images(), again) == first).all() and again.seen == 0


@pytest.mark.parametrize(
    ("dataset", "backbone"),
    [
        (images(seed=1), Counting()),
        (images(n=9), Counting()),
        (images(), Counting(weights="second")),
        (replace(images(), x=images().x[::-1]), Counting()),
        (replace(images(), x=images().x.reshape(10, 2, 8, 3)), Counting()),
    ],
    ids=["images", "number", "weights", "order", "shape"],
)
def test_the_key_changes_with(cache, dataset, backbone):
    embed(images(), Counting())
    embed(dataset, backbone)
    assert backbone.seen == len(dataset) and len(list(cache.iterdir())) == 2


def test_one_changed_pixel_is_another_key(cache):
    dataset = images()
    embed(dataset, Counting())
    x = dataset.x.copy()
    x[7, 3, 3, 2] ^= 1
    backbone = Counting()
    embed(dataset.with_x(x), backbone)
    assert backbone.seen == 10


def test_labels_and_splits_are_not_in_the_key(cache):
    dataset = images()
    embed(dataset, Counting())
    backbone = Counting()
    embed(replace(dataset, name="other", split=np.full(10, "test")), backbone)
    assert backbone.seen == 0


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "zeros", "other"])
def test_a_damaged_file_is_computed_again_and_replaced(cache, damage):
    dataset = images()
    first = embed(dataset, Counting())
    (file,) = cache.iterdir()
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[-3] ^= 0x10  # a number that is a little wrong: only the checksum can tell
    damaged = {"truncated": whole[:-40], "flipped": flipped, "empty": b"", "zeros": bytes(len(whole)), "other": b"{}"}
    file.write_bytes(damaged[damage])
    backbone = Counting()
    assert (embed(dataset, backbone) == first).all() and backbone.seen == 10
    assert file.read_bytes() == whole and len(list(cache.iterdir())) == 1


def test_what_an_interrupted_call_left_is_not_used(cache):
    dataset, backbone = images(), Counting()

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(dataset, backbone, batch_size=4, progress=stop)
    assert not cache.exists() or not list(cache.glob("*.safetensors"))
    again = Counting()
    embed(dataset, again)
    assert again.seen == 10


def test_progress_counts_the_images(cache):
    reports = []
    embed(images(), Counting(), batch_size=4, progress=lambda done, total: reports.append((done, total)))
    assert reports == [(4, 10), (8, 10), (10, 10)]


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("CROSSTAIL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "crosstail"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "crosstail"


def test_a_frozen_run_sees_vectors_of_its_pretrained_backbone(cache, tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "few.npz", x=x, y=[0, 1, 0, 1], domain=[0, 0, 1, 1], split=["train"] * 4)
    spec = RunSpec(dataset=str(tmp_path / "few.npz"), backbone="efficientnet_lite0", freeze=True)
    reports = []
    seen = load_inputs(spec, lambda *report: reports.append(report))
    assert seen.x.shape == (4, 1280) and reports == [("embedding", 4, 4)]
    assert (seen.y == data.load(spec.dataset).y).all()
    reports.clear()
    assert (load_inputs(spec, lambda *report: reports.append(report)).x == seen.x).all() and reports == []


def test_freezing_what_is_not_pretrained_or_no_image_is_refused(cache, tmp_path):
    x = np.zeros((4, 8, 8, 3), np.uint8)
    labels = {"y": [0, 1, 0, 1], "domain": [0, 0, 1, 1]}
    np.savez(tmp_path / "images.npz", x=x, **labels)
    np.savez(tmp_path / "vectors.npz", x=np.zeros((4, 3), np.float32), **labels)
    with pytest.raises(ValueError, match="backbone 'small_cnn' has no pretrained weights to freeze: use efficientnet"):
        load_inputs(RunSpec(dataset=str(tmp_path / "images.npz"), freeze=True))
    with pytest.raises(ValueError, match="holds vectors already: leave --freeze out and use --backbone mlp"):
        load_inputs(RunSpec(dataset=str(tmp_path / "vectors.npz"), freeze=True))


def test_a_cache_that_cannot_be_written_is_named(cache, monkeypatch):
    def full(*args, **options):
        raise SafetensorError("I/O error: No space left on device")

    monkeypatch.setattr(embedding, "save_file", full)
    with pytest.raises(OSError) as caught:
        embed(images(), Counting())
    assert str(caught.value) == (
        f"cannot keep embeddings in {cache} (I/O error: No space left on device); $CROSSTAIL_CACHE names another"
    )
