"""DomainDataset: samples with a class, a domain and a split."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.images.files import ImageFiles

SPLITS = ("train", "val", "test")
SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}  # names in use elsewhere → ours


@dataclass(frozen=True, eq=False)
class DomainDataset:
    """Samples from several domains, in memory or in image files.

    `x` is images (N, H, W, 3) in uint8, embeddings (N, F) in floating point, or embeddings of several views of each
    sample (N, V, F), the plain view first; `y` and `domain` index into `classes` and `domains`; `split` is "train",
    "val" or "test". `notes` tell a user about the data, such as which files were left out; `gaps` are those of them
    that depend on the split (see `with_gaps_noted`).
    """

    name: str
    x: NDArray[Any] | ImageFiles
    y: NDArray[np.int64]
    domain: NDArray[np.int64]
    split: NDArray[np.str_]
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    notes: tuple[str, ...] = ()
    gaps: tuple[str, ...] = ()

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

    @property
    def source_notes(self) -> tuple[str, ...]:
        """The notes that do not depend on the split."""
        return tuple(note for note in self.notes if note not in self.gaps)

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
        """A subset, by row numbers or a mask."""
        x = self.x.take(rows) if isinstance(self.x, ImageFiles) else self.x[rows]
        return replace(self, x=x, y=self.y[rows], domain=self.domain[rows], split=self.split[rows])

    def with_x(self, x: NDArray[Any] | ImageFiles) -> "DomainDataset":
        """The same samples with other inputs, for example their embeddings."""
        return replace(self, x=x)

    def plain(self) -> "DomainDataset":
        """The same samples, with the plain view only."""
        return self.with_x(self.x[:, 0]) if isinstance(self.x, np.ndarray) and self.x.ndim == 3 else self

    def with_notes(self, *notes: str) -> "DomainDataset":
        """The same data set with more notes."""
        return replace(self, notes=(*self.notes, *notes))

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of samples, labels and split; of image files, their paths and sizes.

        It is the same for a copy on another machine.
        """
        digest = hashlib.sha256(json.dumps([self.domains, self.classes, self.x.shape, str(self.x.dtype)]).encode())
        split = np.argmax([self.split == name for name in SPLITS], axis=0)
        for values in (self.y, self.domain, split):
            digest.update(np.ascontiguousarray(values, "<i8").data)
        if isinstance(self.x, ImageFiles):
            digest.update(self.x.checksum.encode())
        else:
            for start in range(0, len(self.x), 4096):  # in parts, so that a memory map is never read as a whole
                digest.update(np.ascontiguousarray(self.x[start : start + 4096]).data)
        return digest.hexdigest()


def pair_names(domains: Sequence[str], classes: Sequence[str]) -> list[str]:
    """Names of all pairs, domains outermost.

    >>> pair_names(["photo", "sketch"], ["dog"])
    ['photo / dog', 'sketch / dog']
    """
    return [f"{d} / {c}" for d in domains for c in classes]
