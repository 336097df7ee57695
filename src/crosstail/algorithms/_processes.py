"""Several processes, one batch: each embeds a part of the inputs, and all see the features of the whole batch."""

from collections.abc import Callable

import torch
import torch.distributed as dist
from torch import Tensor, nn

from crosstail.data import DomainBatch
from crosstail.losses.host import in_full_precision
from crosstail.losses.processes import gathered


def joined(z: Tensor, batch: DomainBatch) -> tuple[Tensor, DomainBatch]:
    """Features, classes and domains of all processes in the order of a single process; `x` remains its own part."""
    if not dist.is_initialized():
        return z, batch
    sizes = [len(z)] * dist.get_world_size()

    def whole(values: Tensor) -> Tensor:
        every = gathered(values, sizes)  # (R · K · n, …) → (K, R, n, …)
        by_domain = every.reshape(len(sizes), batch.groups, -1, *every.shape[1:]).transpose(0, 1)
        return by_domain.flatten(0, 2)

    return whole(z), DomainBatch(batch.x, whole(batch.y), whole(batch.domain), batch.groups)


def backward_of(module: nn.Module, backward: Callable[[Tensor], None]) -> Callable[[Tensor], None]:
    """`backward` without autocast, followed by averaging the gradients if there are several processes.

    A term in full precision has its gradients in full precision, which autocast would compute in half.
    """

    def both(loss: Tensor) -> None:
        with in_full_precision(loss):
            backward(loss)
        if dist.is_initialized():
            average_gradients(list(module.parameters()))

    return both


def average_gradients(parameters: list[Tensor]) -> None:
    """Average gradients over all processes, in one message."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    flat = torch.cat([gradient.flatten() for gradient in gradients])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    sizes = [gradient.numel() for gradient in gradients]
    for gradient, part in zip(gradients, torch.split(flat, sizes), strict=True):
        gradient.copy_(part.view_as(gradient))
