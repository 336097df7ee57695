"""Labelled samples with a model's answers: the test set of a run, an evaluation elsewhere, several folds together."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics._metric import find
from crosstail.metrics._values import PairValues
from crosstail.pairs import pair_number

SAMPLES = ("y", "domain", "predicted", "row", "group", "true", "log_p", "by_prevalence", "distance")
"""Fields with a value for each sample."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers:
    """Samples of known domain and class, and what a model that was not told the domain answers.

    >>> names = {"domains": ["a", "b"], "classes": ["x", "y"], "counts": np.ones((2, 2), int)}
    >>> answers = Answers(**names, y=np.array([0, 1]), domain=np.array([0, 1]), predicted=np.array([0, 0]))
    >>> answers.value().matrix.tolist()
    [[1.0, nan], [nan, 0.0]]
    """

    domains: Sequence[str]
    classes: Sequence[str]
    counts: NDArray[np.int64]  # (D, C), training samples
    y: NDArray[np.int64]  # (N,)
    domain: NDArray[np.int64]  # (N,)
    predicted: NDArray[np.int64]  # (N,)
    row: NDArray[np.int64] | None = None  # (N,), in the data
    group: NDArray[np.int64] | None = None  # (N,), where samples come in groups
    true: NDArray[np.floating] | None = None  # (N,), log probability of the true class
    log_p: NDArray[np.floating] | None = None  # (N, C), log probabilities
    by_prevalence: NDArray[np.int64] | None = None  # (N,), predicted for classes as frequent as in training at the site
    distance: NDArray[np.float32] | None = None  # (N,), from the training samples, where the model measures it
    shots: tuple[int, int] = (100, 20)  # training counts above which a pair is many-shot, up to which it is few-shot
    informed: "Answers | None" = None
    """The same samples, answered by a model that is told the domain; None if the model makes no use of it."""

    def __len__(self) -> int:
        return len(self.y)

    @property
    def told(self) -> "Answers":
        """The answers of the model if it is told the domain; the same ones if it makes no use of it."""
        return self if self.informed is None else self.informed

    def keep(self, rows: NDArray[np.bool_] | NDArray[np.int64]) -> "Answers":
        kept: dict[str, Any] = {name: of[rows] for name in SAMPLES if (of := getattr(self, name)) is not None}
        return replace(self, **kept, informed=None if self.informed is None else self.informed.keep(rows))

    def described(self, **about: Any) -> "Answers":
        """The same answers with other names, training counts or thresholds."""
        return replace(self, **about, informed=None if self.informed is None else self.informed.described(**about))

    def sealed(self) -> "Answers":
        """The same answers, for code that must not write to them."""
        views: dict[str, Any] = {name: of.view() for name in SAMPLES if (of := getattr(self, name)) is not None}
        for view in views.values():
            view.flags.writeable = False
        return replace(self, **views, informed=None if self.informed is None else self.informed.sealed())

    def sorted(self) -> "Answers":
        """The same samples in the order of the data."""
        assert self.row is not None
        return self.keep(self.row.argsort(kind="stable"))

    @classmethod
    def pooled(cls, parts: "Sequence[Answers]") -> "Answers":
        """The samples of several parts, one after the other; training counts are their rounded mean."""
        first = parts[0]
        if len(parts) == 1:
            return first
        values = {name: [getattr(part, name) for part in parts] for name in SAMPLES}
        joined: dict[str, Any] = {n: None if of[0] is None else np.concatenate(of) for n, of in values.items()}
        told = any(part.informed is not None for part in parts)
        informed = cls.pooled([part.told for part in parts]) if told else None
        counts = np.rint(np.mean([part.counts for part in parts], axis=0)).astype(np.int64)
        return replace(first, **joined, counts=counts, informed=informed)

    def in_one_domain(self) -> "Answers":
        """The same samples as if all came from one domain, for metrics over all of them."""
        counts = self.counts.sum(axis=0, keepdims=True)
        return replace(self, domains=["all"], counts=counts, domain=np.zeros_like(self.domain), informed=None)

    @property
    def pair(self) -> NDArray[np.int64]:
        """The pair of each sample (N,), numbered with domains outermost."""
        return pair_number(self.y, self.domain, len(self.classes))

    @property
    def correct(self) -> NDArray[np.bool_]:
        return self.predicted == self.y

    def value(self, metric: str = "accuracy") -> PairValues:
        """A metric of every pair and domain."""
        return find(metric).values(self)
