"""Frozen features: computed once per image, cached, and never read from a damaged or foreign file."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from crosstail import data
from crosstail.backbones import Backbone
from crosstail.data import Augment, BrokenImage, DomainDataset, ImageFiles, to_input
from crosstail.training import RunSpec
from crosstail.training.embedding import cache_folder, embed
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs


class Counting(Backbone):
    """A small backbone that counts the images that it has seen."""

    def __init__(self, weights="first", num_features=5, seed=0):
        torch.manual_seed(seed)
        layers = nn.Sequential(nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(48, num_features))
        super().__init__(layers, num_features)
        self.weights, self.seen = weights, 0

    def forward(self, x):
        self.seen += len(x)
        return super().forward(x)


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "deep" / "cache"))
    return tmp_path / "deep" / "cache"


def dataset_of(x):
    zeros = np.zeros(len(x), np.int64)
    return DomainDataset("made", x, zeros, zeros, np.full(len(x), "train"), ("a",), ("b",))


def images(n=10, seed=0):
    return dataset_of(np.random.default_rng(seed).integers(0, 256, (n, 4, 4, 3), dtype=np.uint8))


@pytest.fixture
def photos(tmp_path):
    """Six photos in two folders."""
    rng = np.random.default_rng(0)
    for i in range(6):
        path = tmp_path / "photos" / "ab"[i % 2] / f"{i}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 256, (50, 40, 3), dtype=np.uint8)).save(path)
    return tmp_path / "photos"


def files(root):
    paths = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.jpg"))
    return dataset_of(ImageFiles(root, paths, resolution=32))


def seen_by(backbone, dataset, **options):
    """How many images the backbone is given, and the features."""
    before = backbone.seen
    found = embed(dataset, backbone, **options)
    return backbone.seen - before, found


def test_features_are_those_of_the_backbone_in_evaluation_mode(cache):
    dataset, backbone = images(), Counting()
    backbone.layers.append(nn.Dropout(0.9))
    backbone.train()
    found = embed(dataset, backbone, batch_size=4)
    with torch.no_grad():
        expected = backbone.layers[:3](to_input(dataset.x)).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)
    assert found.dtype == np.float32 and found.shape == (10, 5)


def test_features_of_files_are_those_of_their_evaluation_view(cache, photos):
    dataset, backbone = files(photos), Counting()
    found = embed(dataset, backbone, batch_size=4)
    with torch.no_grad():
        expected = backbone(to_input(dataset.x[:])).numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_the_second_call_does_not_run_the_backbone(cache):
    _, first = seen_by(Counting(), images())
    again = Counting(seed=1)  # other numbers under the same name: found in the cache, not computed
    seen, found = seen_by(again, images())
    assert seen == 0 and (found == first).all()


def test_labels_splits_and_order_make_no_difference(cache):
    dataset = images()
    _, first = seen_by(Counting(), dataset)
    other = replace(dataset, name="other", split=np.full(10, "test"), x=dataset.x[::-1])
    seen, found = seen_by(Counting(), other)
    assert seen == 0 and (found == first[::-1]).all()


@pytest.mark.parametrize(
    ("dataset", "backbone"),
    [
        (images(seed=1), Counting()),
        (images(), Counting(weights="second")),
        (images(), Counting(num_features=6, weights="third")),
        (dataset_of(images().x.reshape(10, 2, 8, 3)), Counting()),
    ],
    ids=["images", "weights", "width", "shape"],
)
def test_nothing_is_found_for_other(cache, dataset, backbone):
    embed(images(), Counting())
    assert seen_by(backbone, dataset)[0] == 10


def test_only_a_changed_image_is_embedded_again(cache):
    dataset = images()
    _, first = seen_by(Counting(), dataset)
    x = dataset.x.copy()
    x[7, 3, 3, 2] ^= 1
    seen, found = seen_by(Counting(), dataset.with_x(x))
    assert seen == 1 and (found != first).any(axis=1).tolist() == [i == 7 for i in range(10)]


def test_files_are_known_by_their_content(cache, photos, tmp_path):
    _, first = seen_by(Counting(), files(photos))
    moved = tmp_path / "elsewhere"
    shutil.move(photos, moved)
    shutil.move(moved / "a/0.jpg", moved / "b/new name.jpg")
    Image.fromarray(np.full((30, 30, 3), 9, np.uint8)).save(moved / "a/one more.jpg")
    seen, found = seen_by(Counting(), files(moved))
    assert seen == 1 and len(found) == 7
    assert {row.tobytes() for row in first} < {row.tobytes() for row in found}
    Image.fromarray(np.full((30, 30, 3), 99, np.uint8)).save(moved / "a/one more.jpg")
    assert seen_by(Counting(), files(moved))[0] == 1


def test_another_resolution_is_another_preparation(cache, photos):
    dataset = files(photos)
    embed(dataset, Counting())
    assert seen_by(Counting(), dataset.with_x(dataset.x.at_resolution(24)))[0] == 6


def test_the_same_content_in_two_places_has_the_same_features(cache):
    dataset = images()
    twice = dataset_of(np.concatenate([dataset.x, dataset.x]))
    _, found = seen_by(Counting(), twice, batch_size=20)
    np.testing.assert_array_equal(found[:10], found[10:])


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "zeros", "gone"])
@pytest.mark.parametrize("kind", ["rows", "keys"])
def test_what_is_damaged_is_computed_again_and_kept(cache, damage, kind):
    dataset = images()
    _, first = seen_by(Counting(), dataset, batch_size=4)
    (file,) = cache.rglob(f"*.{kind}")
    whole = file.read_bytes()
    flipped = bytearray(whole)
    flipped[len(whole) // 2] ^= 0x10  # a number that is a little wrong: only the sum can tell
    damaged = {"truncated": whole[:-3], "flipped": flipped, "empty": b"", "zeros": bytes(len(whole)), "gone": None}
    if damaged[damage] is None:
        file.unlink()
    else:
        file.write_bytes(damaged[damage])
    lost = 1 if damage in ("truncated", "flipped") else 10
    seen, found = seen_by(Counting(), dataset, batch_size=1 if lost == 1 else 4)
    assert seen == lost
    np.testing.assert_allclose(found, first, rtol=1e-6)
    assert seen_by(Counting(), dataset)[0] == 0


def test_an_interrupted_call_goes_on_where_it_was(cache):
    def stop(done, total):
        if done == 8:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        embed(images(), Counting(), batch_size=4, progress=stop)
    assert seen_by(Counting(), images())[0] == 2


def test_progress_counts_the_images_where_there_is_work(cache):
    reports = []
    embed(images(), Counting(), batch_size=4, progress=lambda *report: reports.append(report))
    assert reports == [(4, 10), (8, 10), (10, 10)]
    embed(images(), Counting(), batch_size=4, progress=lambda *report: reports.append(report))
    assert len(reports) == 3


def test_a_broken_file_is_named(cache, photos):
    broken = photos / "b/1.jpg"
    broken.write_bytes(broken.read_bytes()[:300])
    with pytest.raises(BrokenImage, match=r"b/1.jpg: cannot be decoded"):
        embed(files(photos), Counting())
    dataset = files(photos)
    broken.unlink()
    with pytest.raises(BrokenImage, match=r"b/1.jpg: there is no such file"):
        embed(dataset, Counting())


def test_views_are_the_plain_one_and_augmented_ones(cache, photos):
    dataset, backbone = files(photos), Counting()
    _, plain = seen_by(backbone, dataset)
    seen, found = seen_by(backbone, dataset, views=2, batch_size=4)
    assert seen == 12 and found.shape == (6, 3, 5)  # the plain view was known
    np.testing.assert_array_equal(found[:, 0], plain)
    assert len(np.unique(found.reshape(18, 5).round(4), axis=0)) == 18
    assert seen_by(Counting(), dataset, views=2)[0] == 0
    seen, more = seen_by(Counting(), dataset, views=3)
    assert seen == 6 and (more[:, :3] == found).all()


def test_an_augmented_view_is_one_of_the_paper_s_augmentation(cache):
    """Its seed is the image's checksum, whatever else is in the data set; the oracle is `Augment` on that image."""
    import hashlib

    dataset, backbone = images(), Counting()
    found = embed(dataset, backbone, views=2)
    image = dataset.x[3]
    augment = Augment(resolution=4, seed=int.from_bytes(hashlib.sha256(image.tobytes()).digest(), "big"))
    with torch.no_grad():
        expected = torch.cat([backbone(augment([image], step=v)) for v in (1, 2)])
    np.testing.assert_allclose(found[3, 1:], expected, rtol=1e-4, atol=1e-5)
    alone = embed(dataset.keep(np.array([3])), Counting(), views=2)
    np.testing.assert_array_equal(alone[0], found[3])


def test_where_the_cache_is(monkeypatch, tmp_path):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "own"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("CROSSTAIL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_folder() == tmp_path / "xdg" / "crosstail"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "crosstail"


@pytest.fixture
def few(tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (4, 8, 8, 3), dtype=np.uint8)
    np.savez(tmp_path / "few.npz", x=x, y=[0, 1, 0, 1], domain=[0, 0, 1, 1], split=["train"] * 4)
    return str(tmp_path / "few.npz")


def test_a_frozen_run_sees_vectors_of_its_pretrained_backbone(cache, few):
    spec = RunSpec(dataset=few, backbone="efficientnet_lite0", tune="none")
    reports = []
    seen = load_inputs(resolve(spec)).embedded(lambda *report: reports.append(report))
    assert seen.x.shape == (4, 1280) and reports == [("embedding", 4, 4)]
    assert (seen.y == data.load(spec.dataset).y).all()
    reports.clear()
    again = load_inputs(resolve(spec)).embedded(lambda *report: reports.append(report))
    assert (again.x == seen.x).all() and reports == []


def test_freezing_what_is_not_pretrained_or_no_image_is_refused(cache, few, tmp_path):
    labels = {"y": [0, 1, 0, 1], "domain": [0, 0, 1, 1]}
    np.savez(tmp_path / "vectors.npz", x=np.zeros((4, 3), np.float32), **labels)
    for spec, names in (
        (RunSpec(dataset=few, tune="none", backbone="small_cnn"), "small_cnn.*efficientnet_lite0"),
        (RunSpec(dataset=few, tune="none", backbone="resnet50", weights="random"), "resnet50.*efficientnet_lite0"),
        (RunSpec(dataset=str(tmp_path / "vectors.npz"), tune="none"), "vectors.*--tune none.*--backbone mlp"),
    ):
        with pytest.raises(ValueError, match=names):
            load_inputs(resolve(spec))


@pytest.mark.parametrize("fields", [{"views": 2}, {"head": "linear"}])
def test_views_and_heads_without_frozen_features_are_refused(few, fields):
    with pytest.raises(ValueError, match=r"--head and --views.*--tune none"):
        load_inputs(resolve(RunSpec(dataset=few, **fields)))


def test_a_cache_that_cannot_be_written_is_named(cache):
    cache.mkdir(parents=True)
    (cache / "features").write_text("in the way")
    with pytest.raises(OSError) as caught:
        embed(images(), Counting())
    assert "$CROSSTAIL_CACHE names another folder" in str(caught.value) and str(cache) in str(caught.value)
