"""A batch: inputs with their class and domain."""

from dataclasses import dataclass
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.data.inputs import kind_of


@dataclass(frozen=True, eq=False)
class DomainBatch:
    """Inputs with their class and domain."""

    x: Tensor  # (B, 3, H, W) in [0, 1], or (B, F)
    y: Tensor  # (B,) int64
    domain: Tensor  # (B,) int64
    num_domains: int = 0  # in this batch, if it was counted before it went to a device, which would have to be read

    def __len__(self) -> int:
        return len(self.y)

    def by_domain(self, values: Tensor) -> Tensor:
        """One value per sample (B, …), grouped by the K domains of this batch in their order: (K, B / K, …)."""
        return values.reshape(self.groups, len(self) // self.groups, *values.shape[1:])

    @property
    def groups(self) -> int:
        """The number K of domains in this batch."""
        return self.num_domains or len(torch.unique_consecutive(self.domain))

    def parts(self) -> "list[DomainBatch]":
        """One batch per domain, in the order of the domains."""
        parts = zip(*map(self.by_domain, (self.x, self.y, self.domain)), strict=True)
        return [DomainBatch(x, y, domain, num_domains=1) for x, y, domain in parts]

    def to(self, device: torch.device | str) -> "DomainBatch":
        return DomainBatch(self.x.to(device), self.y.to(device), self.domain.to(device), self.groups)


def to_input(x: NDArray[Any]) -> Tensor:
    """The input of a backbone: uint8 images (B, H, W, 3) → (B, 3, H, W) in [0, 1], embeddings (B, F) → float32.

    Of embeddings with several views (B, V, F), the first, plain view is used.

    >>> import numpy as np
    >>> to_input(np.full((2, 4, 5, 3), 255, np.uint8)).shape
    torch.Size([2, 3, 4, 5])
    """
    return kind_of(x).tensor(x)
