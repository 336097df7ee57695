"""Several processes, one batch: each embeds a part of the samples, and all compute the loss of the whole."""

from collections.abc import Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from crosstail.losses.statistics import PairStatistics


def several() -> bool:
    """Whether this is one of several processes that train together."""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


def batch_sizes(values: Tensor) -> list[int]:
    """The number of samples of each process."""
    sizes = [torch.zeros(1, dtype=torch.int64, device=values.device) for _ in range(dist.get_world_size())]
    dist.all_gather(sizes, torch.full_like(sizes[0], len(values)))
    return [int(size) for size in torch.cat(sizes).cpu()]


def gathered(values: Tensor, sizes: Sequence[int], averaged: bool = True) -> Tensor:
    """The values (n, …) of all processes, in their order: (Σ n, …).

    Every process computes the same loss of all samples, so the gradient of its own is complete. It is multiplied by
    the number of processes if their gradients are `averaged` afterwards, as DistributedDataParallel does.
    """
    found: Tensor = _Gather.apply(values, sizes, len(sizes) if averaged else 1)
    return found


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, values: Tensor, sizes: Sequence[int], factor: int) -> Tensor:
        rank = dist.get_rank()
        ctx.own, ctx.factor = slice(sum(sizes[:rank]), sum(sizes[: rank + 1])), factor
        padded = values.new_zeros(max(sizes), *values.shape[1:])
        padded[: len(values)] = values
        parts = [torch.empty_like(padded) for _ in sizes]
        dist.all_gather(parts, padded)
        return torch.cat([part[:size] for part, size in zip(parts, sizes, strict=True)])

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = gradients
        return ctx.factor * gradient[ctx.own], None, None


def merged(statistics: PairStatistics) -> PairStatistics:
    """Merge the statistics of all processes."""
    states: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(states, {name: value.cpu() for name, value in statistics.state_dict().items()})
    device = statistics.mean.device
    d, c, f = statistics.mean.shape
    total = PairStatistics(d, c, f, statistics.covariance)
    for state in states:
        part = PairStatistics(d, c, f, statistics.covariance)
        part.load_state_dict(state)
        total.merge(part)
    return total.to(device)
