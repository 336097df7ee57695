"""Draws from real seeds, compared by the product's own function: how often it is wrong, and how often it sees."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from studies.false_alarms.runs import Records

from crosstail.metrics import SampleValues

Bools = NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Stored:
    """A model of a seed, with its metric at hand."""

    seed: int
    sampled: SampleValues


@dataclass(frozen=True)
class Pool:
    """The models of a setting, and how to draw a test set from its samples."""

    records: Records
    groups: int = 1  # samples that are drawn together, as if they were pictures of one patient

    @cached_property
    def truth(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        return self.records.samples("y"), self.records.samples("domain")

    @property
    def methods(self) -> dict[str, int]:
        """Number of seeds by method."""
        found: dict[str, int] = {}
        for method, _ in self.records.runs:
            found[method] = found.get(method, 0) + 1
        return found

    @cached_property
    def correct(self) -> dict[str, Bools]:
        """Whether each seed's model is right on each test sample, (S, N) by method."""
        return {m: np.stack([self.records.correct(m, s) for s in range(n)]) for m, n in self.methods.items()}

    def averages(self, method: str) -> NDArray[np.float64]:
        """The pair average of every seed."""
        y, domain = self.truth
        pair = domain * (1 + y.max()) + y
        seen, at = np.unique(pair, return_inverse=True)
        return np.stack([np.bincount(at, c) / np.bincount(at) for c in self.correct[method]]).mean(1)

    def truly(self, method: str) -> float:
        """The pair average over all seeds and test samples."""
        return float(self.averages(method).mean())

    def draw(self, rng: np.random.Generator, share: float = 0.5) -> NDArray[np.int64]:
        """Test samples: a share of every pair without replacement, so that the rest is what they are drawn from."""
        y, domain = self.truth
        rows = []
        for d, c in np.unique(np.stack([domain, y]), axis=1).T:
            own = np.flatnonzero((domain == d) & (y == c))
            rows.append(rng.permutation(own)[: max(1, round(share * len(own)))])
        return np.concatenate(rows)
