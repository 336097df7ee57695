"""Batches on a device: what goes there, when, and that it is what the CPU would train on."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from tests.emulated_gpu import CUDA, emulated_gpu

from crosstail.ahead import Courier, ahead, in_thread
from crosstail.data import DomainBatches, DomainDataset
from crosstail.data.images.augment import Augment

SIZE, EACH = 16, 6


def data_set(x):
    n = len(x)
    split = np.full(n, "train")
    return DomainDataset("d", x, np.arange(n) % 3, np.arange(n) // (n // 2), split, tuple("abc"), ("p", "q"))


def images():
    return np.random.default_rng(0).integers(0, 256, (24, SIZE, SIZE, 3), dtype=np.uint8)


@pytest.mark.parametrize("kind", ["vectors", "images", "augmented"])
def test_a_device_gets_the_batches_of_the_cpu_as_bytes_one_ahead_and_nothing_is_read_back(kind, monkeypatch):
    x = np.random.default_rng(0).normal(size=(24, 5)).astype(np.float32) if kind == "vectors" else images()
    augment = Augment(resolution=SIZE, seed=3, grey=0.3) if kind == "augmented" else None
    options = {"batch_size": EACH, "augment": augment, "workers": 2}
    expected = list(DomainBatches(data_set(x), **options).stream(2, 6))
    sent, send = [], Courier.send
    monkeypatch.setattr(Courier, "send", lambda self, tensors: (sent.append(tensors), send(self, tensors))[1])
    with emulated_gpu() as gpu:
        found, ahead_by = [], []
        for batch in DomainBatches(data_set(x), **options, device=CUDA).stream(2, 6):
            ahead_by.append(len(sent) - len(found))
            found.append(batch)
        on_host = [[part.to("cpu") for part in (batch.x, batch.y, batch.domain)] for batch in found]
    assert ahead_by == [2, 2, 2, 1]
    assert len(gpu.reads) == 3 * len(found)  # those of the line above
    assert {part.device for batch in found for part in (batch.x, batch.y, batch.domain)} == {CUDA}
    assert sent[0][0].dtype == (torch.float32 if kind == "vectors" else torch.uint8)
    assert sent[0][0].nbytes == 2 * EACH * (20 if kind == "vectors" else SIZE * SIZE * 3)
    for (x, y, domain), batch in zip(on_host, expected, strict=True):
        torch.testing.assert_close(x, batch.x, rtol=0, atol=1e-6)
        assert torch.equal(y, batch.y) and torch.equal(domain, batch.domain)
        if kind != "vectors":
            assert x.is_contiguous(memory_format=torch.channels_last)


def test_what_is_computed_waits_for_its_batch_and_the_host_for_what_was_computed_two_batches_before():
    with emulated_gpu() as gpu:
        for _ in DomainBatches(data_set(images()), batch_size=2, device=CUDA).stream(0, 4):
            gpu.log.append("step")
    every = ["event", "wait", "used", "used", "used"]
    copies = [*every, "step"]
    assert gpu.log == ["stream", *copies, *copies, "synchronize", *copies, *copies]


@pytest.mark.parametrize("how", ["ahead", "in_thread"])
def test_copies_take_no_time_beside_what_is_computed(how):
    """A device that sleeps: 8 copies and 8 steps of 30 ms take 9 times that, not 16 times."""

    def copy(i):
        time.sleep(0.03)
        return i

    with ThreadPoolExecutor(1) as device:
        began, found = time.perf_counter(), []
        copies = ahead(device.submit(copy, i).result for i in range(8)) if how == "ahead" else in_thread(copy, range(8))
        for i in copies:
            time.sleep(0.03)
            found.append(i)
        seconds = time.perf_counter() - began
    assert found == list(range(8)) and seconds < 0.03 * 13


def test_the_error_of_work_that_was_begun_is_raised_in_its_turn():
    def fail(i):
        if i == 2:
            raise ValueError("the third")
        return i

    found = []
    with pytest.raises(ValueError, match="the third"):
        found.extend(in_thread(fail, range(5)))
    stream = in_thread(fail, range(5))
    assert [next(stream), next(stream)] == [0, 1]
