"""DomainDataset: samples with a class, a domain and a split."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data.images.files import Samples
from crosstail.data.inputs import InputKind, kind_of
from crosstail.data.names import SameName
from crosstail.pairs import pair_number

SPLITS = ("train", "val", "test")
UNUSED = "none"  # in no split: what a protocol holds out
_OTHER_NAMES = {"training": "train", "valid": "val", "validation": "val", "dev": "val", "testing": "test"}
SPLIT_NAMES = {name: name for name in SPLITS} | _OTHER_NAMES  # names in use elsewhere → ours


@dataclass(frozen=True, eq=False)
class DomainDataset:
    """Samples from several domains, in memory or in image files."""

    name: str
    x: Samples  # uint8 images (N, H, W, 3), embeddings (N, F), or views of each sample (N, V, F), the plain one first
    y: NDArray[np.int64]  # (N,), indices into `classes`
    domain: NDArray[np.int64]  # (N,), indices into `domains`
    split: NDArray[np.str_]  # (N,), of SPLITS or, what a protocol holds out, UNUSED
    classes: tuple[str, ...]
    domains: tuple[str, ...]
    notes: tuple[str, ...] = ()  # for users, such as which files were left out
    gaps: tuple[str, ...] = ()  # the notes that depend on the split (see `with_gaps_noted`)
    group: NDArray[np.int64] | None = None  # (N,), what must stay together in a split, such as pictures of one patient
    origin: NDArray[np.int64] | None = None  # (N,), the rows before label profiles dropped some
    group_like: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)  # unused columns that may number groups
    same_names: tuple[SameName, ...] = ()  # spelled in several ways, while it is undecided whether they are one name

    def __post_init__(self) -> None:
        allowed: dict[str, Any] = {"y": range(self.num_classes), "domain": range(self.num_domains)}
        allowed["split"] = (*SPLITS, UNUSED)
        if self.group is not None:
            allowed["group"] = range(self.group.max(initial=-1) + 1)
        for name, known in allowed.items():
            values = getattr(self, name)
            if len(values) != len(self.x):
                raise ValueError(f"{self.name}: x has {len(self.x)} rows but {name} has {len(values)}")
            wrong = np.flatnonzero(~np.isin(values, known))
            if len(wrong):
                expected = f"one of {', '.join(SPLITS)}" if name == "split" else f"0 to {len(known) - 1}"
                found = values[wrong[0]].item()
                raise ValueError(f"{self.name}: {name} of row {wrong[0]} is {found!r}, expected {expected}")

    def __len__(self) -> int:
        return len(self.x)

    @property
    def num_domains(self) -> int:
        return len(self.domains)

    @property
    def num_classes(self) -> int:
        return len(self.classes)

    @property
    def kind(self) -> InputKind:
        return kind_of(self.x)

    @property
    def source_notes(self) -> tuple[str, ...]:
        """The notes that do not depend on the split."""
        return tuple(note for note in self.notes if note not in self.gaps)

    @cached_property
    def _rows(self) -> dict[str, NDArray[np.int64]]:
        return {split: np.flatnonzero(self.split == split) for split in SPLITS}

    def rows(self, split: str) -> NDArray[np.int64]:
        return self._rows[split]

    def cells(self, split: str | None = None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Row and pair of every label in a split, or in all of them."""
        rows = np.arange(len(self)) if split is None else self.rows(split)
        return rows, pair_number(self.y[rows], self.domain[rows], self.num_classes)

    def counts(self, split: str = "train") -> NDArray[np.int64]:
        """N[d, c], the number of samples per pair."""
        _, pair = self.cells(split)
        return np.bincount(pair, minlength=self.num_domains * self.num_classes).reshape(self.num_domains, -1)

    def keep(self, rows: NDArray[Any]) -> "DomainDataset":
        """A subset, by row numbers or a mask."""
        group = None if self.group is None else self.group[rows]
        part: dict[str, Any] = {name: getattr(self, name)[rows] for name in ("y", "domain", "split")}
        part["group_like"] = {column: numbers[rows] for column, numbers in self.group_like.items()}
        origin = None if self.origin is None else self.origin[rows]
        return replace(self, x=self.kind.take(self.x, rows), **part, group=group, origin=origin)

    def names(self, rows: Any = slice(None), word: str = "row") -> list[str]:
        """What users know these rows by: their paths, or "row 7"."""
        if self.kind.names is not None:
            return self.kind.names(self.x, rows)
        return [f"{word} {row}" for row in np.atleast_1d(np.arange(len(self))[rows]).tolist()]

    def with_x(self, x: Samples) -> "DomainDataset":
        """The same samples with other inputs, for example their embeddings."""
        return replace(self, x=x)

    def plain(self) -> "DomainDataset":
        """The same samples, with the plain view only."""
        return self.with_x(self.x[:, 0]) if self.kind.views(self.x) else self

    def with_notes(self, *notes: str) -> "DomainDataset":
        return replace(self, notes=(*self.notes, *notes))

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of samples (of files: their paths and contents), labels, split and groups; a copy has the same."""
        shape = self.kind.stored(self.x)
        digest = hashlib.sha256(json.dumps([self.domains, self.classes, shape, str(self.x.dtype)]).encode())
        split = np.argmax([self.split == name for name in (*SPLITS, UNUSED)], axis=0)
        for values in (self.y, self.domain, split, *(() if self.group is None else pd.factorize(self.group)[:1])):
            digest.update(np.ascontiguousarray(values, "<i8").data)
        for part in self.kind.parts(self.x):
            digest.update(part)
        return digest.hexdigest()


def pair_names(domains: Sequence[str], classes: Sequence[str]) -> list[str]:
    """Names of all pairs, such as "photo / dog", domains outermost."""
    return [f"{d} / {c}" for d in domains for c in classes]
