"""Several processes, one batch: each embeds a part of the inputs, and all see the features of the whole batch."""

from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from crosstail.data import DomainBatch
from crosstail.losses import PairStatistics


class _Gather(torch.autograd.Function):
    """(B / R, …) of each of R processes → (R, B / R, …).

    Every process computes the loss of the whole batch, so the gradient of its part is complete. Times R, because the
    gradients of the weights are averaged over processes afterwards.
    """

    @staticmethod
    def forward(ctx: Any, values: Tensor) -> Tensor:
        parts = [torch.empty_like(values) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, values.contiguous())
        return torch.stack(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (gradient,) = gradients
        return dist.get_world_size() * gradient[dist.get_rank()]


def joined(z: Tensor, batch: DomainBatch) -> tuple[Tensor, DomainBatch]:
    """Features, classes and domains of all processes in the order of a single process; `x` remains its own part."""
    if not dist.is_initialized():
        return z, batch
    domains = len(torch.unique_consecutive(batch.domain))

    def whole(values: Tensor) -> Tensor:
        parts: Tensor = _Gather.apply(values)  # (R, K · n, …) → (K, R, n, …)
        by_domain = parts.reshape(len(parts), domains, -1, *parts.shape[2:]).transpose(0, 1)
        return by_domain.flatten(0, 2)

    return whole(z), DomainBatch(batch.x, whole(batch.y), whole(batch.domain))


def backward_of(module: nn.Module, backward: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
    """`backward`, followed by averaging the gradients if there are several processes."""

    def both(loss: Tensor) -> None:
        backward(loss)
        average_gradients(list(module.parameters()))

    return both if dist.is_initialized() else backward


def average_gradients(parameters: list[Tensor]) -> None:
    """Average gradients over all processes, in one message."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, part in zip(gradients, torch.split(flat, sizes), strict=True):
        gradient.copy_(part.view_as(gradient))


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
