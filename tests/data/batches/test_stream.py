"""Batches that are made ahead: the same as `at`, in order, from any step, with errors and threads where they belong."""

import threading
import time

import numpy as np
import pytest
import torch

from crosstail.data import BrokenImage, ImageFiles
from crosstail.data.batches.domain_batches import DomainBatches
from crosstail.data.dataset import DomainDataset
from crosstail.data.images.augment import Augment


def data_set(x, n=24):
    y, domain = np.arange(n) % 3, np.arange(n) // (n // 2)
    return DomainDataset("d", x, y, domain, np.full(n, "train"), ("a", "b", "c"), ("p", "q"))


@pytest.fixture
def files(photos):
    root = photos()
    return ImageFiles(root, sorted(p.relative_to(root).as_posix() for p in root.rglob("*.jpg")), resolution=24)


def threads():
    """Those that make batches; a lease that another test has left open has one, too."""
    return [t for t in threading.enumerate() if t.name.startswith(("crosstail-batch", "crosstail-decode"))]


def equal(one, other):
    return all(torch.equal(getattr(one, name), getattr(other, name)) for name in ("x", "y", "domain"))


SOURCES = {
    "files": lambda files: files,
    "cached files": lambda files: files.cached(),
    "images": lambda files: files[:],
    "embeddings": lambda files: np.random.default_rng(0).normal(size=(24, 5)).astype(np.float32),
}


@pytest.mark.parametrize("augmented", [False, True])
@pytest.mark.parametrize("source", SOURCES)
def test_a_stream_is_the_batches_of_its_steps(files, source, augmented):
    if source == "embeddings" and augmented:
        pytest.skip("embeddings are not augmented")
    dataset = data_set(SOURCES[source](files))
    augment = Augment(resolution=20, seed=2) if augmented else None
    batches = DomainBatches(dataset, batch_size=5, augment=augment, workers=3)
    expected = [batches.at(step) for step in range(7)]
    assert all(equal(*pair) for pair in zip(batches.stream(0, 7), expected, strict=True))
    resumed = DomainBatches(dataset, batch_size=5, augment=augment, workers=1)
    assert all(equal(*pair) for pair in zip(resumed.stream(4, 7), expected[4:], strict=True))
    assert list(batches.stream(3, 3)) == [] and not threads()
    if source != "embeddings":
        size = 20 if augmented else 24
        assert expected[0].x.shape == (10, 3, size, size)
        assert expected[0].x.is_contiguous(memory_format=torch.channels_last)


@pytest.mark.parametrize("counted", [None, 3])
def test_memory_is_used_again_but_not_while_a_batch_is_held(files, monkeypatch, counted):
    if counted:  # another interpreter counts references differently: nothing may depend on their number
        module = "crosstail.data.batches.domain_batches.getrefcount"
        monkeypatch.setattr(module, lambda array: counted, raising=False)
    batches = DomainBatches(data_set(files), batch_size=5, augment=Augment(resolution=20), workers=2)
    expected = [batches.at(step) for step in range(12)]
    held = list(batches.stream(0, 12))
    assert all(equal(*pair) for pair in zip(held, expected, strict=True))
    assert len({batch.x.data_ptr() for batch in held}) == 12
    views = [batch.x[0, 0] for batch in batches.stream(0, 12)]
    assert all(torch.equal(view, batch.x[0, 0]) for view, batch in zip(views, expected, strict=True))
    assert len({batch.x.data_ptr() for batch in batches.stream(0, 12)}) <= 5


def test_files_give_what_images_in_memory_give(files):
    """Without augmentation: their evaluation views."""
    on_disk, in_memory = (DomainBatches(data_set(x), batch_size=6) for x in (files, files[:]))
    assert equal(on_disk.at(3), in_memory.at(3))


def test_each_sample_is_augmented_in_its_own_way(files):
    dataset = data_set(files).keep(np.array([0, 12]))
    x = DomainBatches(dataset, batch_size=3, augment=Augment(resolution=24)).at(0).x
    assert not torch.equal(x[0], x[1]) and not torch.equal(x[1], x[2])


def test_batches_are_made_while_one_is_in_use(files, monkeypatch):
    decoded = []
    base = ImageFiles.base

    def counted(self, i):
        decoded.append(i)
        return base(self, i)

    monkeypatch.setattr(ImageFiles, "base", counted)
    stream = DomainBatches(data_set(files), batch_size=4, workers=2).stream(0, 100)
    next(stream)
    for _ in range(200):
        if len(decoded) == 4 * 8:
            break
        time.sleep(0.02)
    time.sleep(0.1)
    assert len(decoded) == 4 * 8  # the batch in use and three more, and none beyond that
    stream.close()


def test_closing_early_ends_the_threads(files):
    stream = DomainBatches(data_set(files), batch_size=4, workers=2).stream(0, 10_000)
    next(stream)
    assert threads()
    stream.close()
    assert not threads()


def test_an_error_of_the_consumer_ends_the_threads(files):
    batches = DomainBatches(data_set(files), batch_size=4, workers=2)

    def train():
        for _ in batches.stream(0, 10_000):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train()
    assert not threads()


@pytest.mark.parametrize("augment", [None, Augment(resolution=24)])
def test_a_broken_image_arrives_in_the_consumer(files, augment):
    path = files.paths()[7]
    (files.root / path).write_bytes(b"no image")
    batches = DomainBatches(data_set(files), batch_size=2, augment=augment, workers=2)
    first = next(step for step in range(100) if 7 in batches.batch_rows(step))
    seen = 0
    with pytest.raises(BrokenImage, match=rf"^{path}: .*JPEG"):
        for _ in batches.stream(0, 100):
            seen += 1
    assert seen == first and not threads()
    with pytest.raises(BrokenImage):
        batches.at(first)


def test_embeddings_are_not_augmented():
    x = np.zeros((24, 3), np.float32)
    with pytest.raises(ValueError, match="d: embeddings cannot be augmented, only images can"):
        DomainBatches(data_set(x), batch_size=2, augment=Augment())
