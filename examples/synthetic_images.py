"""Synthetic images for the examples: four classes in three domains, with long tails in opposite directions."""

import torch
from torch import Tensor

COUNTS = torch.tensor([[60, 20, 6, 2], [2, 6, 20, 60], [30, 1, 30, 1]])  # (D, C), training samples of each pair


def synthetic_images(counts: Tensor, *, seed: int, noise: float = 5.0) -> tuple[Tensor, Tensor, Tensor]:
    """Images (N, 3, 16, 16), classes (N,) and domains (N,): a pattern per class, a colour per domain, and noise."""
    fixed = torch.Generator().manual_seed(0)
    patterns, colours = torch.randn(4, 1, 16, 16, generator=fixed), torch.randn(3, 3, 1, 1, generator=fixed)
    pair = torch.arange(12).repeat_interleave(counts.flatten())
    domain, y = pair // 4, pair % 4
    spread = torch.randn(len(y), 3, 16, 16, generator=torch.Generator().manual_seed(seed))
    return patterns[y] + colours[domain] + noise * spread, y, domain
