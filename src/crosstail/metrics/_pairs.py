"""Accuracy of a classifier on each (domain, class) pair."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.metrics._intervals import average_interval, wilson
from crosstail.metrics._values import PairValues
from crosstail.metrics._views import View, Weighting, cells, pair_index, pair_weights

if TYPE_CHECKING:
    from crosstail.metrics._answers import Answers


def group_squares(y: ArrayLike, domain: ArrayLike, group: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.int64]:
    """Σ n_g² of each pair (D, C), where n_g of its samples are of group g; in groups of one, its number of samples."""
    cell, pair = cells(pair_index(y, domain, num_domains=shape[0], num_classes=shape[1]), group)
    squares = np.bincount(pair, np.bincount(cell) ** 2, minlength=shape[0] * shape[1])
    return squares.astype(np.int64).reshape(shape)


@dataclass(frozen=True, eq=False)
class PairAccuracy(PairValues):
    """Test samples per (domain, class) pair, and how many of them are classified correctly.

    Accuracies are between 0 and 1, or None where there is nothing to average. Pairs without test samples are
    excluded from every mean and minimum. `squares` is given where samples come in groups (see `independent`). In a
    domain all samples weigh the same, and in the mean over pairs all pairs; `weights` replace both.

    >>> accuracy = PairAccuracy(np.array([[9, 0], [1, 0]]), np.array([[10, 10], [1, 0]]))
    >>> accuracy.domains, accuracy.average, accuracy.worst_pair, accuracy.worst_pair_index
    ([0.45, 1.0], 0.725, 0.0, (0, 1))
    """

    hits: NDArray[np.int64]  # (D, C)
    totals: NDArray[np.int64]  # (D, C)
    squares: NDArray[np.int64] | None = None  # (D, C), as `group_squares` counts them; None if they equal the totals
    weights: NDArray[np.float64] | None = None  # (D, C), not negative

    def __post_init__(self) -> None:
        for name in ("totals", "hits", *["squares"] * (self.squares is not None)):
            table = np.asarray(getattr(self, name))
            if table.ndim != 2 or table.dtype.kind not in "iu":
                raise ValueError(f"{name} is {table.dtype} of shape {table.shape}, expected integers (D, C)")
            if table.shape != np.shape(self.totals):
                raise ValueError(f"{name} has shape {table.shape} but totals has {np.shape(self.totals)}")
            table = table.astype(np.int64)  # a private copy
            table.setflags(write=False)
            object.__setattr__(self, name, table)
        wrong = np.argwhere((self.hits < 0) | (self.hits > self.totals))
        if len(wrong):
            d, c = wrong[0]
            found = f"{self.hits[d, c]} hits of {self.totals[d, c]} samples"
            raise ValueError(f"pair [{d}, {c}] has {found}, expected 0 <= hits <= totals")
        if self.squares is not None:
            if np.any((self.squares < self.totals) | (self.squares > self.totals**2)):
                raise ValueError("squares must be between the totals and their squares")
            if np.array_equal(self.squares, self.totals):
                object.__setattr__(self, "squares", None)

    @classmethod
    def from_predictions(
        cls,
        predicted: ArrayLike,
        y: ArrayLike,
        domain: ArrayLike,
        *,
        num_domains: int,
        num_classes: int,
        group: ArrayLike | None = None,
    ) -> "PairAccuracy":
        """Count hits from predicted classes (N,); samples with the same number in `group` depend on each other."""
        pair = pair_index(y, domain, num_domains=num_domains, num_classes=num_classes)
        predicted = np.asarray(predicted)
        if predicted.shape != pair.shape:
            raise ValueError(f"predicted has shape {predicted.shape}, expected one class per sample, {pair.shape}")
        shape = num_domains, num_classes
        hits = np.bincount(pair[predicted == np.asarray(y)], minlength=num_domains * num_classes)
        totals = np.bincount(pair, minlength=num_domains * num_classes)
        squares = None if group is None else group_squares(y, domain, group, shape)
        return cls(hits.reshape(shape), totals.reshape(shape), squares)

    @classmethod
    def of(cls, answers: "Answers") -> "PairAccuracy":
        """The accuracy of labelled samples with a model's answers."""
        sizes = {"num_domains": len(answers.domains), "num_classes": len(answers.classes)}
        return cls.from_predictions(answers.predicted, answers.y, answers.domain, **sizes, group=answers.group)

    @classmethod
    def pooled(cls, parts: Sequence["PairAccuracy"]) -> "PairAccuracy":
        """The accuracy on several test sets together, such as folds; no group is in two of them."""
        tables = zip(*((part.hits, part.totals, part._squares) for part in parts), strict=True)
        hits, totals, squares = (np.sum(of_parts, axis=0) for of_parts in tables)
        return cls(hits, totals, squares, parts[0].weights)

    def only(self, pairs: NDArray[np.bool_]) -> "PairAccuracy":
        """The accuracy on some of the pairs, by a mask (D, C)."""
        hits, totals, squares = (np.where(pairs, table, 0) for table in (self.hits, self.totals, self._squares))
        return PairAccuracy(hits, totals, squares, self.weights)

    def by_class(self) -> "PairAccuracy":
        """The same with all classes of a domain weighing the same."""
        return replace(self, weights=np.ones(self.totals.shape))

    def weighted(self, weights: ArrayLike) -> "PairAccuracy":
        """The same with pairs as frequent as a table (D, C) says; those that do not occur are left out."""
        table = np.asarray(weights, float)
        return replace(self.only(table > 0), weights=table)

    @property
    def independent(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Hits and totals (D, C), reduced to as many independent samples as the test samples are worth.

        Samples of one group, such as the pictures of one patient, count as right or wrong together. The accuracy of n
        samples in groups of n_g then varies as if n² / Σ n_g² of them were independent (Kish, 1965). If they depend on
        each other less than that, intervals are wider than necessary. Samples of one group in two pairs count as
        independent.

        >>> accuracy = PairAccuracy.from_predictions([1] * 6, [1] * 6, [0] * 6, num_domains=1, num_classes=2,
        ...                                          group=[0, 0, 0, 1, 1, 1])
        >>> accuracy.independent[1].tolist()
        [[0.0, 2.0]]
        """
        worth = self.totals / np.maximum(self._squares, 1)
        return self.hits * worth, self.totals * worth

    @property
    def matrix(self) -> NDArray[np.float64]:
        """Accuracy per pair (D, C); NaN without test samples."""
        accuracy = np.full(self.totals.shape, np.nan)
        np.divide(self.hits, self.totals, out=accuracy, where=self.totals > 0)
        return accuracy

    @property
    def domains(self) -> list[float | None]:
        """Accuracy per domain, over all its samples, or the mean over its classes by their weights."""
        if self.weights is not None:
            shares, known = self.weights * (self.totals > 0), np.nan_to_num(self.matrix)
            rows = zip(known, shares, strict=True)
            return [float(np.average(row, weights=w)) if w.any() else None for row, w in rows]
        per_domain = zip(self.hits.sum(axis=1).tolist(), self.totals.sum(axis=1).tolist(), strict=True)
        return [hits / total if total else None for hits, total in per_domain]

    def interval(
        self, of: View | int | tuple[int, int] = "pair_average", *, confidence: float = 0.95
    ) -> tuple[float, float] | None:
        """Confidence interval (low, high) for a view, for domain `of=d`, or for pair `of=(d, c)`.

        It reflects the sampling of test samples, given their number per pair. The method depends on `of`:

        - a pair or the samples of a domain are a single proportion: Wilson's interval for `independent` samples;
        - an average: Wilson's interval with an effective number of samples (`average_interval`). A bootstrap has no
          width where every answer is right, and is too narrow with few test samples per pair;
        - a worst view: the interval of the pair or domain that is the worst, as if it had been chosen before. On other
          samples it is likely to do better.
        """
        if isinstance(of, str) and of not in get_args(View):
            raise ValueError(f"unknown view {of!r}, expected one of {', '.join(get_args(View))}")
        if of == "worst_pair":
            place = self.worst_pair_index
            return None if place is None else self.interval(place, confidence=confidence)
        if of == "worst_domain":
            worst = self.worst_domain
            return None if worst is None else self.interval(self.domains.index(worst), confidence=confidence)
        right, tests = self.independent
        if isinstance(of, int) and self.weights is not None:
            one = np.arange(len(tests)) == of
            return self.only(np.broadcast_to(one[:, None], tests.shape)).interval(confidence=confidence)
        if not isinstance(of, str):
            index = tuple(np.atleast_1d(of))  # (d,) or (d, c)
            hits, total, squares = (int(table[index].sum()) for table in (self.hits, self.totals, self._squares))
            return wilson(hits * total / squares, total * total / squares, confidence) if total else None
        if not tests.any():
            return None
        weights = self._shares(self.totals, "average" if of == "average" else "pair_average")
        ends = average_interval(right.ravel(), tests.ravel(), weights.ravel(), confidence)
        return float(ends[0]), float(ends[1])

    def _shares(self, totals: NDArray[Any], of: Weighting) -> NDArray[np.float64]:
        """The weight (D, C) of each pair in an average."""
        if self.weights is None or of == "class_mean":
            return pair_weights(totals, of)
        table = self.weights * (totals > 0)
        return pair_weights(table, "average") if of == "average" else table / table.sum()

    @classmethod
    def mean_interval(cls, runs: Sequence[PairValues], of: View | Weighting) -> tuple[float, float] | None:
        """As if one run had their mean hits: this is conservative, as runs err on different samples."""
        own = [run for run in runs if isinstance(run, PairAccuracy)]
        totals = np.mean([run.totals for run in own], axis=0)
        if not totals.any() or of == "worst_domain" or of == "worst_pair":
            return None
        hits, tests = np.mean([run.independent for run in own], axis=0)
        weights = own[0]._shares(totals, of)
        low, high = average_interval(hits.ravel(), tests.ravel(), weights.ravel())
        return float(low), float(high)

    def to_json(self, counts: ArrayLike | None = None, many: int = 100, few: int = 20) -> dict[str, Any]:
        """All metrics as plain values, including shot groups if the training counts are given."""
        shots = {} if counts is None else {"shots": self.shots(counts, many, few)}
        views = {name: getattr(self, name) for name in get_args(View)}
        tables = {"hits": self.hits.tolist(), "totals": self.totals.tolist()}
        if self.squares is not None:
            tables["squares"] = self.squares.tolist()
        return {**views, "tenth_percentile": self.tail, **shots, **tables}

    @property
    def _squares(self) -> NDArray[np.int64]:
        return self.totals if self.squares is None else self.squares
