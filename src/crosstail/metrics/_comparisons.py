"""Two models pair by pair, or many models at once, on the same test samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.metrics._intervals import Difference, mean_interval, paired_difference, wilson
from crosstail.metrics._pairs import PairAccuracy
from crosstail.metrics._values import PairValues, SampleValues, Z, standard_error
from crosstail.metrics._views import View, cells, pair_index

if TYPE_CHECKING:
    from crosstail.metrics._answers import Answers

Floats = NDArray[np.float64]


class Compared(Protocol):
    """A run of a method that is compared with others."""

    @property
    def pairs(self) -> PairValues:
        """The metric of every pair."""

    @property
    def answers(self) -> "Answers | None":
        """The test samples with its answers, if these are stored."""


def by_permutation(first: Sequence[Compared], second: Sequence[Compared], of: View, draws: int) -> Difference | None:
    """The difference in accuracy between two methods, by `paired_difference`; None unless samples are the same."""
    sides = [[one.answers for one in side] for side in (first, second)]
    known = [answers for side in sides for answers in side if answers is not None]
    if len(known) < len(first) + len(second) or not all(one.same_samples(known[0]) for one in known):
        return None
    a, b = (np.stack([answers.correct for answers in side if answers]) for side in sides)
    sizes = {"num_domains": len(known[0].domains), "num_classes": len(known[0].classes)}
    about = known[0].y, known[0].domain
    return paired_difference(a, b, *about, **sizes, group=known[0].group, of=of, resamples=draws)


def by_influence(first: Sequence[Compared], second: Sequence[Compared], of: View, draws: int) -> Difference | None:
    """The same for a metric of samples: a normal test of the sum of the differences between influences."""
    sides = [[one.pairs for one in side if isinstance(one.pairs, SampleValues)] for side in (first, second)]
    samples, row = sides[0][0].samples, 1 if of == "average" else 0
    if not all(np.array_equal(values.samples, samples) for side in sides for values in side):
        return None
    influence = [np.mean([values.influence[row] for values in side], axis=0) for side in sides]
    error = standard_error(influence[0] - influence[1], sides[0][0].group)
    means = [np.mean([getattr(values, of) or 0.0 for values in side]) for side in sides]
    estimate = float(means[0] - means[1])
    p = 2 * NormalDist().cdf(-abs(estimate) / error) if error > 0 else float(estimate == 0)
    return Difference(estimate, estimate - Z * error, estimate + Z * error, p)


def holm(p_values: ArrayLike) -> Floats:
    """P-values adjusted for their number, so that any is falsely below a level with at most that chance (Holm, 1979).

    Of m p-values in ascending order, the adjusted ones are p̃_i = max_{j ≤ i} min(1, (m − j + 1) p_j). NaN stands for no
    test and does not count.
    """
    p = np.asarray(p_values, float)
    adjusted, tested = np.full(p.shape, np.nan), np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.maximum.accumulate(np.minimum(1, p[order] * np.arange(len(order), 0, -1)))
    return adjusted


def prediction_interval(values: ArrayLike, confidence: float = 0.9) -> tuple[float, float] | None:
    """Where one more accuracy (between 0 and 1) of the same kind will be, such as on a new domain.

    x̄ ± t_{n−1} s √(1 + 1/n) of n values, cut off at 0 and 1: unlike the interval of their mean, it does not shrink to
    nothing as n grows. None with fewer than three values, which say nothing about their spread.
    """
    x = np.asarray(values, float)
    if len(x) < 3:
        return None
    low, high = mean_interval(x, confidence)
    middle, reach = (low + high) / 2, (high - low) / 2 * (len(x) + 1) ** 0.5
    return max(0.0, middle - reach), min(1.0, middle + reach)


def difference_interval(
    hits_a: Floats, hits_b: Floats, totals: Floats, correlation: Floats | float = 0.0
) -> tuple[Floats, Floats]:
    """95 % interval of the difference of two accuracies a − b on as many samples, elementwise (Newcombe, 1998).

    It joins Wilson's intervals (l, u) of both: the lower end is d − √((a − l_a)² − 2φ (a − l_a)(u_b − b) + (u_b − b)²),
    the upper one likewise, where φ is the `correlation` of the answers on the same samples, 0 if unknown. NaN without
    samples.
    """
    a, b = (np.divide(h, totals, out=np.full(np.shape(totals), np.nan), where=totals > 0) for h in (hits_a, hits_b))
    (low_a, high_a), (low_b, high_b) = wilson(hits_a, totals), wilson(hits_b, totals)
    phi = np.asarray(correlation)

    def reach(one: Floats, other: Floats) -> Floats:
        return np.asarray(np.sqrt(np.maximum(0, one**2 - 2 * phi * one * other + other**2)))

    low, high = a - b - reach(a - low_a, high_b - b), a - b + reach(high_a - a, b - low_b)
    return np.clip(low, -1, 1), np.clip(high, -1, 1)


@dataclass(frozen=True, eq=False)
class PairDifferences:
    """Accuracy of model a minus model b on each pair (D, C), NaN without test samples."""

    estimate: Floats
    low: Floats  # 95 % interval
    high: Floats
    p_value: Floats
    adjusted: Floats  # p-values corrected for the number of pairs


def pair_differences(
    correct_a: NDArray[np.bool_],
    correct_b: NDArray[np.bool_],
    y: NDArray[np.int64],
    domain: NDArray[np.int64],
    *,
    num_domains: int,
    num_classes: int,
    group: NDArray[np.int64] | None = None,
) -> PairDifferences:
    """Compare two models on each pair, on the same test samples (N,).

    The p-value is from an exact sign test on the groups in which one model has more right answers, without groups on
    the samples that only one model gets right (McNemar's test). It is 1 if there are none. The intervals are from
    `difference_interval`, with as many samples as they are worth (`PairAccuracy.independent`).
    """
    from scipy.special import bdtr  # here, because the page of a run does not need it

    shape = num_domains, num_classes
    pair = pair_index(y, domain, num_domains=num_domains, num_classes=num_classes)
    of_a, of_b, of_both = (
        PairAccuracy.from_predictions(
            np.where(right, y, -1), y, domain, num_domains=num_domains, num_classes=num_classes, group=group
        )
        for right in (correct_a, correct_b, correct_a & correct_b)
    )
    (hits_a, totals), (hits_b, _), (both, _) = (of.independent for of in (of_a, of_b, of_both))
    low, high = difference_interval(hits_a, hits_b, totals, _correlation(hits_a, hits_b, both, totals))
    cell, pair_of = cells(pair, group)
    net = np.bincount(cell, correct_a.astype(float) - correct_b, minlength=len(pair_of))
    wins, losses = (np.bincount(pair_of[side], minlength=num_domains * num_classes) for side in (net > 0, net < 0))
    p = np.minimum(1, 2 * bdtr(np.minimum(wins, losses), wins + losses, 0.5)).reshape(shape)
    p = np.where(of_a.totals > 0, p, np.nan)
    return PairDifferences(of_a.matrix - of_b.matrix, low, high, p, holm(p.ravel()).reshape(shape))


def _correlation(hits_a: Floats, hits_b: Floats, both: Floats, totals: Floats) -> Floats:
    """φ of the answers of two models, with Newcombe's correction for continuity."""
    neither, only_a, only_b = totals - hits_a - hits_b + both, hits_a - both, hits_b - both
    product = both * neither - only_a * only_b
    product = np.where(product > 0, np.maximum(0, product - totals / 2), product)
    scale = np.sqrt(hits_a * (totals - hits_a) * hits_b * (totals - hits_b))
    return np.divide(product, scale, out=np.zeros_like(scale), where=scale > 1e-9)
