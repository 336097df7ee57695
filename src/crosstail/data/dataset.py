"""What every source becomes: samples with a class, a domain and a split."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

SPLITS = ("train", "val", "test")


@dataclass(frozen=True, eq=False)
class DomainDataset:
    """Samples of several domains, in memory.

    `x` is images (N, H, W, 3) in uint8 or embeddings (N, F) in float32; `y` and `domain` index into `classes`
    and `domains`; `split` says "train", "val" or "test".
    """

    name: str
    x: NDArray[Any]
    y: NDArray[np.int64]
    domain: NDArray[np.int64]
    split: NDArray[np.str_]
    classes: tuple[str, ...]
    domains: tuple[str, ...]

    def __post_init__(self) -> None:
        for field in ("y", "domain", "split"):
            if len(getattr(self, field)) != len(self.x):
                raise ValueError(f"{self.name}: x has {len(self.x)} rows but {field} has {len(getattr(self, field))}")
        for field, known in (("y", self.classes), ("domain", self.domains)):
            values = getattr(self, field)
            wrong = np.flatnonzero((values < 0) | (values >= len(known)))
            if len(wrong):
                raise ValueError(
                    f"{self.name}: {field} of row {wrong[0]} is {values[wrong[0]]}, expected 0 to {len(known) - 1}"
                )
        unknown = sorted(set(np.unique(self.split)) - set(SPLITS))
        if unknown:
            raise ValueError(f"{self.name}: split {unknown[0]!r} is none of {', '.join(SPLITS)}")

    def __len__(self) -> int:
        return len(self.x)

    @property
    def num_domains(self) -> int:
        return len(self.domains)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def is_image(self) -> bool:
        return self.x.ndim == 4

    @cached_property
    def _rows(self) -> dict[str, NDArray[np.int64]]:
        return {split: np.flatnonzero(self.split == split) for split in SPLITS}

    def rows(self, split: str) -> NDArray[np.int64]:
        """The row numbers of a split."""
        return self._rows[split]

    def counts(self, split: str = "train") -> NDArray[np.int64]:
        """N[d, c], the number of samples per pair."""
        rows = self.rows(split)
        flat = self.domain[rows] * self.num_classes + self.y[rows]
        return np.bincount(flat, minlength=self.num_domains * self.num_classes).reshape(self.num_domains, -1)

    def keep(self, rows: NDArray[Any]) -> "DomainDataset":
        """The same data set with these rows only (row numbers or a mask)."""
        return replace(self, x=self.x[rows], y=self.y[rows], domain=self.domain[rows], split=self.split[rows])

    def with_x(self, x: NDArray[Any]) -> "DomainDataset":
        """The same samples seen through other inputs, for example their embeddings."""
        return replace(self, x=x)


def pair_names(domains: Sequence[str], classes: Sequence[str]) -> list[str]:
    """Names of all pairs, domains outermost.

    >>> pair_names(["photo", "sketch"], ["dog"])
    ['photo / dog', 'sketch / dog']
    """
    return [f"{d} / {c}" for d in domains for c in classes]
