"""A training step on kept activations, compared with the bare forward and backward pass of the part that is trained.

EfficientNet-Lite0 at 224 pixels, 2 × 24 images. Ours reads the activations from disk, mirrors half of them, makes the
batch and takes the optimizer's step.
"""

import os
import tempfile
from collections.abc import Iterator
from unittest import mock

import numpy as np
import torch
import torch.nn.functional as F

from bench._rows import Row
from bench._timing import interleave
from crosstail import backbones
from crosstail.algorithms import Task, build
from crosstail.data import DomainBatch, DomainBatches, DomainDataset
from crosstail.training.embedding import activations

EACH, IMAGES = 24, 96


def run() -> list[Row]:
    y, domain = np.tile([0, 1], IMAGES // 2), np.repeat([0, 1], IMAGES // 2)
    x = np.random.default_rng(0).integers(0, 256, (IMAGES, 224, 224, 3), dtype=np.uint8)
    names: dict[str, tuple[str, ...]] = {"classes": ("a", "b"), "domains": ("c", "d")}
    images = DomainDataset("made", x, y, domain, np.full(IMAGES, "train"), **names)
    network = backbones.build("efficientnet_lite0", (3, 224, 224))
    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, CROSSTAIL_CACHE=folder):
        dataset = images.with_x(activations(images, network, 1, mirrored=True))
        tail = network.divided(1).tail
        algorithm = build("bsoftmax", tail, Task(torch.from_numpy(images.counts())), {}).train()
        optimizers, batches = algorithm.optimizers(), DomainBatches(dataset, batch_size=EACH)
        stream: Iterator[DomainBatch] = batches.stream(0, 10**6)
        fixed = batches.at(0)

        def bare() -> None:
            algorithm.zero_grad()
            F.cross_entropy(algorithm.head(tail(fixed.x)), fixed.y).backward()

        seconds = interleave(
            {"ours": lambda: algorithm.update(next(stream), optimizers, torch.Tensor.backward), "bare": bare},
            repeats=5 if os.environ.get("CROSSTAIL_BENCH") == "quick" else 15,
        )
    ratio = seconds["ours"] / seconds["bare"]
    return [Row("step on kept activations", seconds["ours"], "its forward and backward pass", ratio, 1.1)]
