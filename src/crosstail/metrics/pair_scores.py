"""Sums over the samples of each pair, from which all selection metrics are computed."""

from dataclasses import dataclass
from typing import Any, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.criterion import Criterion, score
from crosstail.metrics.pairs import PairAccuracy
from crosstail.metrics.views import View, pair_index

LEAST = 1e-12  # probability that a log loss is of, at least: one sample must not decide a mean


@dataclass(frozen=True, eq=False)
class PairScores:
    """Sums over the samples of each pair: those of several parts of a split add up to those of the split."""

    counts: NDArray[np.int64]  # (3, D, C): hits, samples, and the samples of a domain that are taken for a class
    losses: NDArray[np.float64]  # (D, C): log losses

    @classmethod
    def of(
        cls, predicted: ArrayLike, log_p: NDArray[np.floating], y: ArrayLike, domain: ArrayLike, num_domains: int
    ) -> "PairScores":
        """From predicted classes (N,) and log probabilities (N, C); NaN counts as a probability of 0."""
        own = log_p[np.arange(len(log_p)), np.asarray(y, np.int64)]
        return cls.of_true_class(predicted, own, y, domain, num_domains=num_domains, num_classes=log_p.shape[1])

    @classmethod
    def of_true_class(
        cls, predicted: ArrayLike, own: NDArray[np.floating], y: ArrayLike, domain: ArrayLike, **sizes: int
    ) -> "PairScores":
        """From predicted classes and log probabilities of the true ones (N,), `num_domains` and `num_classes`."""
        shape = sizes["num_domains"], sizes["num_classes"]
        accuracy = PairAccuracy.from_predictions(predicted, y, domain, **sizes)
        said, pair = pair_index(predicted, domain, **sizes), pair_index(y, domain, **sizes)
        each, cells = log_losses(own), shape[0] * shape[1]
        taken = np.bincount(said, minlength=cells).reshape(shape)
        losses: NDArray[Any] = np.bincount(pair, each, minlength=cells).reshape(shape)
        return cls(np.stack([accuracy.hits, accuracy.totals, taken]), losses)

    @property
    def accuracy(self) -> PairAccuracy:
        """Hits and totals of every pair."""
        return PairAccuracy(self.counts[0], self.counts[1])

    @property
    def macro_f1(self) -> float | None:
        """Mean over the classes with samples of F1 = 2 · hits / (samples + taken for it), in all domains together.

        A class without samples has no F1, but what is wrongly taken for it still counts against the true classes. None
        without samples.
        """
        hits, totals, taken = self.counts.sum(1)
        present = totals > 0
        return float((2 * hits[present] / (totals + taken)[present]).mean()) if present.any() else None

    @property
    def log_loss(self) -> float | None:
        """Mean over the pairs with samples of the mean −log p of the true class; None without samples.

        Rounded, so that it does not depend on how the samples were divided among processes.
        """
        totals = self.counts[1]
        present = totals > 0
        return round(float((self.losses[present] / totals[present]).mean()), 9) if present.any() else None

    def value(self, on: Criterion) -> float | None:
        """The metric to select on; None without samples."""
        found: float | None = getattr(self.accuracy if on in get_args(View) else self, on)
        return found

    def score(self, on: Criterion) -> float | None:
        """The same such that larger is better."""
        return score(self.value(on), self.accuracy.pair_average, on)


def log_losses(own: NDArray[np.floating]) -> NDArray[np.float64]:
    """−log p of the true class of every sample (N,), at most −log(10⁻¹²), as of NaN."""
    own = own.astype(np.float64)
    return -np.where(own > np.log(LEAST), own, np.log(LEAST))
