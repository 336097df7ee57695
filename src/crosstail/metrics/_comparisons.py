"""Two models pair by pair on the same test samples, and where one more accuracy will be."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.metrics._intervals import mean_interval, wilson
from crosstail.metrics._methods import holm
from crosstail.metrics._pairs import PairAccuracy
from crosstail.metrics._views import cells, pair_index

Floats = NDArray[np.float64]


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
