"""Our training loop compared with a bare PyTorch loop, and with the way other public code trains BoDA.

The bare loop has the same batch size, network, optimizer and number of steps; it neither evaluates nor saves anything.
The peers' way makes one forward pass per domain, and a pass over the whole training set every 120 steps for the
centroids.
"""

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F

from bench._rows import Row
from bench._timing import interleave
from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatches, DomainDataset, to_input
from crosstail.losses import boda_loss
from crosstail.training import RunSpec
from crosstail.training.devices import Devices, fabric_of
from crosstail.training.folder import RunFolder
from crosstail.training.loop import train

CLASSES = 10
# Half the paper's width allows four times the steps, so that the one evaluation at the end weighs less.
WIDTH = {"small_cnn": 32, "mlp": None}
REFRESH = 120


def make(shape: tuple[int, ...], domains: int, each: int) -> DomainDataset:
    """Random inputs, all for training except one per pair for validation."""
    rng = np.random.default_rng(0)
    size = domains * each
    image = len(shape) == 3
    x = rng.integers(0, 255, (size, *shape), dtype=np.uint8) if image else rng.normal(size=(size, *shape))
    domain, y = np.arange(size) % domains, np.arange(size) // domains % CLASSES
    split = np.where(np.arange(size) < domains * CLASSES, "val", "train")
    classes, names = tuple(f"c{c}" for c in range(CLASSES)), tuple(f"d{d}" for d in range(domains))
    return DomainDataset("bench", x.astype(np.uint8 if image else np.float32), y, domain, split, classes, names)


def ours(name: str, dataset: DomainDataset, backbone: str, batch_size: int, steps: int) -> Callable[[], object]:
    """`train` as `crosstail fit` calls it, with a single evaluation at the end on a few samples."""
    shape = dataset.kind.shape(dataset.x)
    task = Task(torch.from_numpy(dataset.counts("train")))
    spec = RunSpec(dataset="bench", algorithm=name, steps=steps, batch_size=batch_size, evaluations=1)

    def run() -> None:
        torch.manual_seed(0)
        algorithm = algorithms.build(name, backbones.build(backbone, shape, WIDTH[backbone]), task)
        with tempfile.TemporaryDirectory() as folder:
            fabric = fabric_of(Devices(), spec.precision)
            train(algorithm, dataset, spec, stage=1, last=steps, folder=RunFolder(Path(folder)), fabric=fabric)

    return run


def bare(dataset: DomainDataset, backbone: str, batch_size: int, steps: int) -> Callable[[], object]:
    """The same training as a minimal PyTorch loop."""
    shape = dataset.kind.shape(dataset.x)
    rows = dataset.rows("train")
    parts = [torch.from_numpy(rows[dataset.domain[rows] == d]) for d in range(dataset.num_domains)]
    y = torch.from_numpy(dataset.y)

    def run() -> None:
        torch.manual_seed(0)
        network = backbones.build(backbone, shape, WIDTH[backbone])
        model = torch.nn.Sequential(network, torch.nn.Linear(network.num_features, CLASSES))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        orders = [part[torch.randperm(len(part))] for part in parts]
        for step in range(steps):
            start = step * batch_size % (len(orders[0]) - batch_size)
            chosen = torch.cat([order[start : start + batch_size] for order in orders])
            x = to_input(dataset.x[chosen.numpy()])
            loss = F.cross_entropy(model(x), y[chosen])
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    return run


def peers_boda(dataset: DomainDataset, backbone: str, batch_size: int, steps: int) -> Callable[[], object]:
    """One forward pass per domain, and a share of a full pass for the centroids in proportion to the steps."""
    shape = (3, *dataset.x.shape[1:3])
    counts = torch.from_numpy(dataset.counts("train"))
    batches = DomainBatches(dataset, batch_size=batch_size)
    rows = dataset.rows("train")
    passed = rows[: len(rows) * steps // REFRESH]

    def run() -> None:
        torch.manual_seed(0)
        network = backbones.build(backbone, shape, WIDTH[backbone])
        head = torch.nn.Linear(network.num_features, CLASSES)
        optimizer = torch.optim.Adam([*network.parameters(), *head.parameters()], lr=1e-3)
        with torch.no_grad():
            for i in range(0, len(passed), 64):
                network(to_input(dataset.x[passed[i : i + 64]]))
        centroids = torch.randn(*counts.shape, network.num_features)
        for step in range(steps):
            batch = batches.at(step)
            z = torch.cat([network(x) for x in batch.x.split(batch_size)])
            alignment = boda_loss(z, batch.y, batch.domain, centroids, counts)
            loss = F.cross_entropy(head(z), batch.y) + 0.1 * alignment
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

    return run


def run() -> list[Row]:
    images, vectors = make((32, 32, 3), 2, 4000), make((1280,), 4, 600)
    cnn = interleave(
        {
            "bare": bare(images, "small_cnn", 24, 24),
            "erm": ours("erm", images, "small_cnn", 24, 24),
            "boda": ours("boda", images, "small_cnn", 24, 24),
            "peers": peers_boda(images, "small_cnn", 24, 24),
        },
        repeats=7,
    )
    mlp = interleave(
        {
            "bare": bare(vectors, "mlp", 24, 300),
            "erm": ours("erm", vectors, "mlp", 24, 300),
            "boda": ours("boda", vectors, "mlp", 24, 300),
        },
        repeats=7,
    )
    return [
        Row("our loop, erm, small CNN, 2 × 24", cnn["erm"], "a bare loop", cnn["erm"] / cnn["bare"], 1.03),
        Row("our loop, erm, 1,280 features, 4 × 24", mlp["erm"], "a bare loop", mlp["erm"] / mlp["bare"], 1.10),
        Row("boda with statistics, small CNN", cnn["boda"], "erm", cnn["boda"] / cnn["erm"], 1.05),
        Row("the peers' way of boda, 8,000 images", cnn["peers"], "ours", cnn["peers"] / cnn["boda"], 1.0, "at least"),
    ]
