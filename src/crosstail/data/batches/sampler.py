"""A pair-balanced sampler for torch's DataLoader."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike
from torch.utils.data import Sampler

from crosstail.data.batches.row_streams import class_balanced_stream


class PairBalancedSampler(Sampler[int]):
    """Row numbers in which every (domain, class) pair present is equally frequent.

    It cycles through the pairs, in a new random order each time, and each pair through its samples. An epoch has
    `num_samples` rows, by default as many as the data set; epochs continue each other, and `set_epoch` jumps to one.

    >>> sampler = PairBalancedSampler([0, 0, 0, 1], ["p", "p", "q", "q"], num_samples=6)
    >>> sorted(sampler)
    [0, 1, 2, 2, 3, 3]
    """

    def __init__(self, y: ArrayLike, domain: ArrayLike, *, num_samples: int | None = None, seed: int = 0) -> None:
        (_, c), (domains, d) = (np.unique(labels, return_inverse=True) for labels in (y, domain))
        if not len(c) or c.shape != d.shape:
            raise ValueError(f"y has {len(c)} labels and domain {len(d)}, expected the same number, at least 1")
        self.num_samples = len(c) if num_samples is None else num_samples
        if self.num_samples < 1:
            raise ValueError(f"num_samples is {num_samples}, expected 1 or more")
        self.epoch = 0
        self._stream = class_balanced_stream(np.arange(len(c)), c * len(domains) + d, seed, 0)

    def __len__(self) -> int:
        return self.num_samples

    def __iter__(self) -> Iterator[int]:
        start = self.epoch * self.num_samples
        self.epoch += 1
        return iter(self._stream.take(start, self.num_samples).tolist())

    def set_epoch(self, epoch: int) -> None:
        """Continue with this epoch, counted from 0."""
        self.epoch = epoch
