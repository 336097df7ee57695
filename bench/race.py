"""Short trials on vectors: the time before the first step, and five trials in sequence or side by side.

Network, batches and features are those of a race on 1,280 features from four domains. Side by side, five networks
are stacked into one (`torch.func`) with one fused Adam; in sequence, each has a fused Adam of its own. A ratio above
the limit would mean that stacking has become worthwhile (docs/decisions/race.md).
"""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import numpy as np
import torch
import torch.nn.functional as F
from torch.func import functional_call, stack_module_state, vmap

from bench._first_step import seconds_to_first_step
from bench._rows import Row
from bench._timing import interleave
from crosstail.sweeps.store import Store
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.resolve import resolve

TRIALS, STEPS = 5, 20


def start_up(folder: Path) -> float:
    """Median seconds from receiving a job to the end of its first step, with the data already in memory."""
    save_separable(folder / "vectors.npz", np.full((4, 10), 50), num_features=1280)
    size = {"backbone": "mlp", "steps": 1, "evaluations": 1}
    shared = resolve(RunSpec(dataset=str(folder / "vectors.npz"), algorithm="erm", **size))
    store = Store(folder / "sweep")
    return median([seconds_to_first_step(store, replace(shared, seed=seed)) for seed in range(12)][2:])


def network() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(1280, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))


def one_after_the_other(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    networks = [network() for _ in range(TRIALS)]
    optimizers = [torch.optim.Adam(net.parameters(), fused=True) for net in networks]

    def run() -> None:
        for net, optimizer in zip(networks, optimizers, strict=True):
            for _ in range(STEPS):
                optimizer.zero_grad(set_to_none=True)
                F.cross_entropy(net(x), y).backward()
                optimizer.step()

    return run


def side_by_side(x: torch.Tensor, y: torch.Tensor) -> Callable[[], None]:
    base = network()
    stacked, _ = stack_module_state([network() for _ in range(TRIALS)])
    weights = {name: value.detach().requires_grad_() for name, value in stacked.items()}
    optimizer = torch.optim.Adam(weights.values(), fused=True)
    forward = vmap(lambda weights, x: functional_call(base, weights, (x,)), in_dims=(0, None))

    def run() -> None:
        for _ in range(STEPS):
            optimizer.zero_grad(set_to_none=True)
            scores = forward(weights, x)  # (trials, B, C)
            F.cross_entropy(scores.flatten(0, 1), y.repeat(TRIALS)).backward()
            optimizer.step()

    return run


def run() -> list[Row]:
    x, y = torch.randn(96, 1280), torch.arange(96) % 10
    both = interleave({"apart": one_after_the_other(x, y), "stacked": side_by_side(x, y)}, repeats=9)
    with tempfile.TemporaryDirectory() as folder:
        before = start_up(Path(folder))
    ratio = both["apart"] / both["stacked"]
    return [
        Row("a short trial, up to its first step", before, "", None, 0.05),
        Row("5 trials, one after the other", both["apart"], "side by side", ratio, 1.25),
    ]
