"""Groups: dealing them whole to the parts of a split, as evenly over the pairs as they allow, and where they leak."""

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data.images.look_alike import connected

Codes = NDArray[np.int64]


def deal(pair: Codes, group: Codes | None, wanted: Codes, least: Codes, seed: int) -> Codes:
    """The part 0 to K − 1 that each sample is dealt to, (N,), or −1 for the rest, which keeps `least` (P,) of a pair.

    Each part should have `wanted` (K, P) samples. It takes random groups as long as they fit, or else the smallest, so
    that it has at least one sample. Rare pairs choose first.
    """
    table = _GroupsByPair(pair, group, wanted.shape[1])
    room = (table.totals - least).tolist()
    have = np.zeros_like(wanted).tolist()
    part = [-1] * table.num_groups

    def give(g: int, k: int) -> bool:
        """Give a group to a part, unless a pair would keep less than its least."""
        cells = table.cells(g)
        if part[g] >= 0 or any(size > room[p] for p, size in cells):
            return False
        part[g] = k
        for p, size in cells:
            room[p] -= size
            have[k][p] += size
        return True

    for p, groups in table.rarest_first(seed):
        for k, target in enumerate(wanted[:, p].tolist()):
            for g, size in groups:
                if have[k][p] >= target:
                    break
                if size <= target - have[k][p]:
                    give(g, k)
            if have[k][p] == 0 < target:
                any(give(g, k) for g, _ in sorted(groups, key=lambda found: found[1]))
    return np.array(part, np.int64)[table.group]


def fold_of(pair: Codes, group: Codes | None, folds: int, seed: int) -> Codes:
    """The fold 0 to K − 1 that each sample is tested in, (N,): each fold has about as many samples of every pair."""
    table = _GroupsByPair(pair, group, int(pair.max(initial=-1)) + 1)
    if table.num_groups < folds:
        found = f"{table.num_groups} samples" if group is None else f"{table.num_groups} groups of samples"
        raise ValueError(f"--folds is {folds}, but there are only {found}")
    have = [[0] * len(table.totals) for _ in range(folds)]
    size_of = [0] * folds
    fold = [-1] * table.num_groups
    for p, groups in table.rarest_first(seed):
        for g, _ in sorted(groups, key=lambda found: -found[1]):  # large ones first, while folds can still be evened
            if fold[g] < 0:
                k = fold[g] = min(range(folds), key=lambda k: (have[k][p], size_of[k]))
                for q, size in table.cells(g):
                    have[k][q] += size
                    size_of[k] += size
    return np.array(fold, np.int64)[table.group]


def joined(one: Codes, other: Codes) -> Codes:
    """Groups (N,) that keep together what either of two groupings (N,) does."""
    size = int(one.max(initial=-1)) + 1
    nodes = size + int(other.max(initial=-1)) + 1
    return pd.factorize(connected(np.stack([one, size + other]), nodes)[one])[0].astype(np.int64)


def leaked(group: NDArray[np.int64], split: NDArray[np.str_]) -> NDArray[np.int64]:
    """Rows of the test samples that share a group with a training sample."""
    return np.flatnonzero((split == "test") & np.isin(group, group[split == "train"]))


def in_several(group: NDArray[np.int64], of: NDArray[Any]) -> NDArray[np.int64]:
    """The groups whose samples have several values of something, such as domains."""
    values, code = np.unique(of, return_inverse=True)
    cells = np.unique(group * len(values) + code)
    return np.flatnonzero(np.bincount(cells // len(values)) > 1)


class _GroupsByPair:
    """How many samples each group has in each pair; as lists, because groups are dealt one at a time."""

    def __init__(self, pair: Codes, group: Codes | None, num_pairs: int) -> None:
        self.group: Codes = np.arange(len(pair)) if group is None else np.unique(group, return_inverse=True)[1]
        self.num_groups = int(self.group.max(initial=-1)) + 1
        self.totals = np.bincount(pair, minlength=num_pairs)
        cells, self._size = np.unique(self.group * num_pairs + pair, return_counts=True)
        self._group, self._pair = np.divmod(cells, num_pairs)
        self._ends = np.searchsorted(self._group, np.arange(self.num_groups + 1)).tolist()

    @cached_property
    def _cells(self) -> list[tuple[int, int]]:
        return list(zip(self._pair.tolist(), self._size.tolist(), strict=True))

    def cells(self, g: int) -> list[tuple[int, int]]:
        """The pairs of a group, and its samples in each."""
        return self._cells[self._ends[g] : self._ends[g + 1]]

    def rarest_first(self, seed: int) -> Iterator[tuple[int, list[tuple[int, int]]]]:
        """Each pair with its groups and their samples in it, in random order."""
        order = np.argsort(self._pair, kind="stable")
        starts = np.searchsorted(self._pair[order], np.arange(len(self.totals) + 1))
        for p in np.argsort(self.totals, kind="stable").tolist():
            shuffled = np.random.default_rng([seed, p]).permutation(order[starts[p] : starts[p + 1]])
            yield p, list(zip(self._group[shuffled].tolist(), self._size[shuffled].tolist(), strict=True))
