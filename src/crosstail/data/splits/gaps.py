"""What a split cannot teach or test: classes and domains without training samples, pairs without test samples."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from shlex import quote
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset, pair_names
from crosstail.data.splits.groups import leaked


def with_gaps_noted(dataset: DomainDataset, unseen: str | None = None, *, folds: bool = False) -> DomainDataset:
    """Note what the split lacks by mistake: not the `unseen` domain, nor pairs that only other `folds` test."""
    gaps = tuple(_gaps(dataset, unseen, folds))
    return replace(dataset, notes=(*dataset.source_notes, *gaps), gaps=gaps)


def _gaps(dataset: DomainDataset, unseen: str | None, folds: bool) -> Iterator[str]:
    if dataset.num_domains == 1:
        alike = "methods that compare domains, such as coral and boda, have nothing to compare"
        yield f"there is one domain ({dataset.domains[0]}): {alike}"
    train = dataset.counts("train")
    if not train.sum():
        yield "there are no training samples: it can be evaluated on, not trained on"
        return
    for lacking, names, message in (
        (train.sum(axis=0) == 0, dataset.classes, "no training samples in any domain, so it cannot be learned:"),
        (train.sum(axis=1) == 0, dataset.domains, "no training samples in the domain"),
        ((train > 0).sum(axis=1) == 1, dataset.domains, "training samples of one class only in the domain"),
    ):
        if found := [names[i] for i in np.flatnonzero(lacking) if names[i] != unseen]:
            yield f"{message} {_listed(found)}"
    tests = dataset.counts("test")
    untested = (train > 0) & (tests == 0) & tests.any(axis=1, keepdims=True)
    if untested.any() and not folds:
        every = pair_names(dataset.domains, dataset.classes)
        lacks = [every[p] for p in np.flatnonzero(untested)]
        yield f"training samples but no test samples in {len(lacks)} of {(train > 0).sum()} pairs: {_listed(lacks)}"
    if dataset.group is not None and tests.any():
        yield _groups(dataset, dataset.group, folds)
    yield from map(str, group_columns(dataset))


class GroupColumn(NamedTuple):
    """A column that is not used but looks like a group, and how many test samples share its value with training."""

    name: str
    shared: int
    tests: int

    def __str__(self) -> str:
        tests = f"{self.shared:,} of {self.tests:,} test samples share its value with a training sample"
        leak = f" ({tests}: accuracy is inflated)" if self.shared else ""
        return f"the column {self.name} looks like a group{leak}: add --column {quote(f'group={self.name}')}"


def group_columns(dataset: DomainDataset) -> list[GroupColumn]:
    """The columns that look like a group and whose values repeat, the one that leaks most first."""
    tests, columns = len(dataset.rows("test")), list[GroupColumn]()
    for name, group in dataset.group_like.items():
        if 1 < len(np.unique(group)) < len(group):
            columns.append(GroupColumn(name, len(leaked(group, dataset.split)), tests))
    return sorted(columns, key=lambda column: -column.shared)


def leaking_column(dataset: DomainDataset) -> str | None:
    """The column to name as the group, because its values are in training and test."""
    return next((column.name for column in group_columns(dataset) if column.shared), None)


def _groups(dataset: DomainDataset, group: NDArray[np.int64], folds: bool) -> str:
    _, group, sizes = np.unique(group, return_inverse=True, return_counts=True)
    if shared := len(leaked(group, dataset.split)):
        tests = len(dataset.rows("test"))
        return f"{shared:,} of {tests:,} test samples share a group with a training sample: accuracy may be inflated"
    shares = [f"{len(dataset.rows(split)) / len(dataset):.0%}" for split in ("test", "val")]
    several = f"{int((sizes > 1).sum()):,} groups of two or more samples (of the source, or duplicates)"
    parts = f": {shares[0]} of all samples are for test, {shares[1]} for validation"
    return f"{several} stay together" + ("" if folds else parts)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
