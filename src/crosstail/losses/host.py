"""What the host may look at while a loss is computed: values on the CPU, unless they are only traced."""

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor


def readable() -> bool:
    """Whether values can be read at all: not while a graph is compiled, nor in the transforms of `torch.func`."""
    return not (torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active())


def on_host(values: Tensor) -> bool:
    """Whether values can be read without waiting for a device."""
    return values.device.type == "cpu" and readable()


def peek(value: Tensor) -> float:
    """Read a number through NumPy, which raises an error for a tensor on a device instead of waiting for it."""
    return float(value.detach().numpy())


def occurrences(index: Tensor, size: int) -> Tensor:
    """How often each of the numbers below `size` occurs, like `bincount`, for which the host waits for the device."""
    return index.new_zeros(size).index_add(0, index, torch.ones_like(index))


def in_full_precision(like: Tensor) -> AbstractContextManager[Any]:
    """Disable autocast, on devices that have it: differences of squares need full precision."""
    kind = like.device.type
    return torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()


class NotFinite(ValueError):
    """NaN or infinite features or statistics, as when training diverges."""


def require_finite(values: Tensor, name: str) -> None:
    """Raise an error that names the first entry that is NaN or infinite."""
    wrong = (~torch.isfinite(values)).nonzero()
    if len(wrong):
        place = ", ".join(map(str, wrong[0].tolist()))
        raise NotFinite(f"{name}[{place}] is NaN or infinite; features and statistics must be finite")
