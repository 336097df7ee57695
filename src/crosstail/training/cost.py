"""What a run costs, before it starts: time, memory and disk, from a few measured passes over a few samples."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from crosstail import machine
from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset
from crosstail.training.devices import Devices
from crosstail.training.embedding import Embedder
from crosstail.training.model import build_algorithm
from crosstail.training.resolve import steps_of_stages
from crosstail.training.run_data import Inputs, input_shape
from crosstail.training.spec import RunSpec
from crosstail.training.tuned_share import SHARES

MEASURED = 8  # samples, but one if that takes longer than SLOW
SLOW = 0.5  # seconds
SPARE = 1.1  # for buffers of the libraries


@dataclass(frozen=True)
class Cost:
    """Seconds, and bytes of memory and disk; fitting a second stage to features is not included."""

    seconds: float
    memory: float = 0
    disk: float = 0


def cost_of(spec: RunSpec, inputs: Inputs, devices: Devices) -> Cost:
    """The cost of a resolved run whose samples are not embedded yet; more memory than there is is refused."""
    samples, counts = inputs.samples, inputs.samples.counts("train")
    rows, n = np.linspace(0, len(samples) - 1, MEASURED).astype(np.int64), len(samples)
    before, shape = Cost(0), input_shape(samples)
    x = samples.kind.tensor(np.asarray(samples.x[rows]))
    if inputs.frozen is not None:
        before, x = _embedding(spec, samples, inputs.frozen, rows)
        shape = shape if spec.stages else tuple(x.shape[1:])
    algorithm = build_algorithm(spec, shape, counts)
    if not any(True for _ in algorithm.backbone.parameters()):  # nothing is trained in steps but a classifier
        return before
    device = torch.device(devices.kind)
    forward, both, saved = _passes(algorithm.to(device), x.to(device))
    batch = (spec.batch_size or 1) * int(counts.any(axis=1).sum())
    share = batch / (devices.number * devices.nodes)
    repeated = len(SHARES) - 1 if spec.stages and spec.tuned_share is None else 1
    evaluated = (1 + (spec.evaluations or 0)) * sum(len(samples.rows(split)) for split in ("val", "test"))
    steps = steps_of_stages(spec)[0]
    seconds = steps * share * algorithm.passes * both * (4 / 3 if devices.chunks > 1 else 1)
    seconds += (evaluated + (repeated * n if spec.second_stage else 0)) * forward
    own = sum(3 * p.numel() * p.element_size() for p in algorithm.trained)  # gradients and two moments
    memory = machine.memory_used() + SPARE * (before.memory + own)
    if device.type == "cpu":
        _require(spec, memory, SPARE * share * saved, devices.chunks, int(share))
    return Cost(before.seconds + seconds, memory + SPARE * share * saved / devices.chunks, before.disk)


def _require(spec: RunSpec, memory: float, saved: float, chunks: int, batch: int) -> None:
    """Refuse more memory than the machine has, with what fits."""
    room = machine.memory()
    if memory + saved / chunks <= room:
        return
    parts = next((k for k in (2**i for i in range(1, 12)) if k <= batch and memory + saved / k <= room), None)
    way = f"add --accumulate {parts}" if parts else "choose a smaller --resolution or --backbone"
    other = " or use --tune last" if not spec.stages else ""
    needed = f"about {(memory + saved / chunks) / 1e9:.1f} GB of memory, and this machine has {room / 1e9:.1f} GB"
    raise ValueError(f"--tune {spec.tune} with batches of {batch} images needs {needed}: {way},{other}".rstrip(","))


def _embedding(spec: RunSpec, samples: DomainDataset, frozen: Any, rows: Any) -> tuple[Cost, Tensor]:
    """What embedding costs that is not in the cache, and what is trained on, of a few samples."""
    divided = frozen.divided(spec.stages) if spec.stages else None
    embedder, n = Embedder(samples.x, frozen, divided=divided), len(samples)
    new = embedder.missing(rows)
    embedder.network.expected = 0  # an export for ONNX Runtime would take longer than the measurement
    embedder.network(samples.kind.tensor(np.asarray(samples.x[rows[:1]])))
    began = time.perf_counter()
    x = samples.kind.tensor(np.asarray(samples.x[rows]))
    made = embedder.network.outputs(x)
    each = (time.perf_counter() - began) / len(rows) * (1 + spec.views)
    size = (1 + spec.views) * divided.cut.size if divided else 0
    kept = n if spec.budget is None or not size else min(n, spec.budget // size)
    features = 4.0 * n * frozen.num_features * (1 if spec.stages else 1 + spec.views)
    disk = new * (features + kept * size)
    return Cost(new * n * each, features, disk), torch.from_numpy(made[-1])


def _passes(algorithm: Algorithm, x: Tensor) -> tuple[float, float, float]:
    """Seconds of a forward pass and of both passes over one sample, and bytes that the first keeps for the second."""
    network, parameters = algorithm.backbone, {p.untyped_storage().data_ptr() for p in algorithm.parameters()}
    network.train()
    slow = _seconds(network, x[:1]) > SLOW
    x = x[: 1 if slow else None]
    stored: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in parameters:
            stored[storage.data_ptr()] = storage.nbytes()
        return tensor

    def both(x: Tensor) -> None:
        network(x).square().mean().backward()

    with torch.no_grad():
        forward = min(_seconds(network, x) for _ in range(2))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        whole = _seconds(both, x)
    whole = whole if slow else min(whole, _seconds(both, x))
    return forward / len(x), whole / len(x), sum(stored.values()) / len(x)


def _seconds(function: Callable[[Tensor], Any] | nn.Module, x: Tensor) -> float:
    began = time.perf_counter()
    found = function(x)
    if isinstance(found, Tensor):
        found.sum().item()  # waits for a GPU
    return time.perf_counter() - began
