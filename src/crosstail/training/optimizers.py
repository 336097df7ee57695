"""The optimizers of a run, and what their learning rate is multiplied by at every step: both torch's own."""

from collections.abc import Callable
from inspect import signature
from typing import Any

import torch
from torch.optim import SGD, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR

from crosstail.algorithms import Algorithm
from crosstail.training.spec import OPTIMIZERS, RunSpec

KEPT = ("params", "lr", "weight_decay", "betas")
"""What an optimizer takes from the one that it replaces."""


def optimizers_of(algorithm: Algorithm, spec: RunSpec) -> list[Optimizer]:
    """An algorithm's optimizers, of the kind that the spec names."""
    found = algorithm.optimizers()
    if spec.optimizer is None:
        return found
    kind = getattr(torch.optim, OPTIMIZERS[spec.optimizer])
    taken, more = {"params", *signature(kind).parameters}, {"momentum": 0.9} if kind is SGD else {}
    groups = [[{k: group[k] for k in KEPT if k in group and k in taken} for group in one.param_groups] for one in found]
    return [kind(one, **more) for one in groups]


def factors_of(spec: RunSpec) -> list[float]:
    """The learning rate at every step relative to its full value; empty if it is constant."""
    assert spec.steps is not None
    if spec.schedule is None and spec.warm_up is None:
        return []
    rising = spec.warm_up or 0
    falling = spec.steps - rising
    kinds: dict[str | None, Callable[[Optimizer], Any]] = {
        None: lambda of: LinearLR(of, start_factor=1),
        "cosine": lambda of: CosineAnnealingLR(of, T_max=falling),
        "linear": lambda of: LinearLR(of, start_factor=1, end_factor=0, total_iters=falling),
    }
    begun = _factors(lambda of: LinearLR(of, start_factor=1 / (rising + 1), total_iters=rising), rising)
    return begun + _factors(kinds[spec.schedule], falling)


def _factors(kind: Callable[[Optimizer], Any], steps: int) -> list[float]:
    one = SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    scheduler: Any = kind(one) if steps else None
    found: list[float] = []
    for _ in range(steps):
        found.append(float(one.param_groups[0]["lr"]))
        one.step()
        scheduler.step()
    return found
