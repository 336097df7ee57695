"""A batch: inputs with their class and domain."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor


@dataclass(frozen=True, eq=False)
class DomainBatch:
    """Inputs with their class and domain."""

    x: Tensor  # (B, 3, H, W) in [0, 1], or (B, F)
    y: Tensor  # (B,) int64
    domain: Tensor  # (B,) int64

    def __len__(self) -> int:
        return len(self.y)

    def by_domain(self, values: Tensor) -> Tensor:
        """Group one value per sample (B, …) by the K domains of this batch, in their order: (K, B / K, …).

        >>> batch = DomainBatch(torch.zeros(4, 2), torch.zeros(4), torch.tensor([0, 0, 2, 2]))
        >>> batch.by_domain(torch.arange(4)).tolist()
        [[0, 1], [2, 3]]
        """
        groups = len(torch.unique_consecutive(self.domain))
        return values.reshape(groups, len(self) // groups, *values.shape[1:])

    def parts(self) -> "list[DomainBatch]":
        """One batch per domain, in the order of the domains."""
        return [DomainBatch(*part) for part in zip(*map(self.by_domain, (self.x, self.y, self.domain)), strict=True)]

    def to(self, device: torch.device | str) -> "DomainBatch":
        """The same batch on another device."""
        return DomainBatch(self.x.to(device), self.y.to(device), self.domain.to(device))


def to_input(x: NDArray[Any]) -> Tensor:
    """The input of a backbone: uint8 images (B, H, W, 3) → (B, 3, H, W) in [0, 1], embeddings (B, F) → float32.

    Of embeddings with several views (B, V, F), the first, plain view is used.

    >>> to_input(np.full((2, 4, 5, 3), 255, np.uint8)).shape
    torch.Size([2, 3, 4, 5])
    """
    if x.ndim == 4 and x.dtype == np.uint8:
        # NumPy divides on this thread. Torch would use several, which on a busy machine wait for each other longer
        # than the division takes. The result is channels-last, which suits convolutions.
        return torch.from_numpy(np.divide(x, np.float32(255))).permute(0, 3, 1, 2)
    if x.ndim == 3 and x.dtype.kind == "f":
        x = x[:, 0]
    if x.ndim == 2:
        return torch.tensor(x, dtype=torch.float32)
    raise ValueError(f"x is {x.dtype} {x.shape}, expected uint8 images (B, H, W, 3) or embeddings (B, F)")
