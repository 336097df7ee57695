"""How sure an accuracy, or the difference of two models' accuracies, is."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.metrics.views import View, pair_index, view


@overload
def wilson(hits: int, total: int, confidence: float = 0.95) -> tuple[float, float]: ...
@overload
def wilson(
    hits: NDArray[Any], total: NDArray[Any] | int, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def wilson(hits: Any, total: Any, confidence: float = 0.95) -> tuple[Any, Any]:
    """Wilson's score interval for one proportion, elementwise (Wilson, 1927).

    It has a width even at 0 and at `total` hits, where the bootstrap has none; without samples it is (0, 1).

    >>> low, high = wilson(10, 10)
    >>> print(f"{low:.4f} to {high:.4f}")
    0.7225 to 1.0000
    """
    hits, total = np.asarray(hits), np.asarray(total)
    if np.any((hits < 0) | (hits > total)):
        raise ValueError("every number of hits must lie between 0 and its total")
    z = NormalDist().inv_cdf((1 + _checked(confidence)) / 2)

    def lower(k: NDArray[Any]) -> NDArray[np.float64]:
        spread = k * (total - k) / np.maximum(total, 1) + z * z / 4
        return np.asarray((k + z * z / 2 - z * np.sqrt(spread)) / (total + z * z))

    # The upper end by symmetry, so that it is exactly 1 when all samples are hits, as the lower is 0 at none.
    low, high = lower(hits), 1 - lower(total - hits)
    return (low, high) if low.ndim else (float(low), float(high))


def percentile_interval(drawn: NDArray[np.float64], confidence: float) -> tuple[float, float]:
    """The central part of bootstrap draws that holds `confidence` of them."""
    tail = (1 - _checked(confidence)) / 2
    low, high = np.quantile(drawn, [tail, 1 - tail])
    return float(low), float(high)


@dataclass(frozen=True)
class Difference:
    """A difference of two accuracies, its interval, and the two-sided p-value of no difference."""

    estimate: float
    low: float
    high: float
    p_value: float


def paired_difference(
    correct_a: ArrayLike,
    correct_b: ArrayLike,
    y: ArrayLike,
    domain: ArrayLike,
    *,
    num_domains: int,
    num_classes: int,
    of: View = "pair_average",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Difference:
    """Model a minus model b on the same test samples, by a bootstrap that resamples them within each pair.

    `correct_a` and `correct_b` (N,) say for each sample whether that model is right, or (R, N) of R runs, whose mean
    counts. Both models see the same resample, so what is hard for both cancels. The interval holds the middle of the
    draws, and the p-value is twice the share of draws on the rarer side of 0. A worst view is a minimum, which
    resampling pulls down, though for both models: its interval is approximate.

    >>> y, domain = np.repeat([0, 1], 50), np.zeros(100, int)
    >>> right, wrong = np.ones(100, bool), np.arange(100) % 5 > 0
    >>> difference = paired_difference(right, wrong, y, domain, num_domains=1, num_classes=2)
    >>> round(difference.estimate, 3), difference.low > 0.1, difference.p_value < 0.01
    (0.2, True, True)
    """
    pair = pair_index(y, domain, num_domains=num_domains, num_classes=num_classes)
    a, b = np.asarray(correct_a), np.asarray(correct_b)
    for name, correct in (("correct_a", a), ("correct_b", b)):
        if correct.dtype != bool or correct.shape[-1:] != pair.shape or correct.ndim > 2:
            raise ValueError(
                f"{name} is {correct.dtype} of shape {correct.shape}, expected bool of shape {pair.shape}: "
                "pass predicted == y"
            )
    if not len(pair):
        raise ValueError("there are no test samples to compare the models on")

    # A sample's outcome is in how many runs a and b are right (of one run each: neither, only b, only a, both), so
    # resampling a pair's samples with replacement is exactly a multinomial draw over the outcomes that occur: no
    # (resamples, N) table of sample numbers is needed.
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    cells, numbers = np.unique(np.stack([pair, a.sum(axis=0), b.sum(axis=0)]), axis=1, return_counts=True)
    pairs = num_domains * num_classes
    totals = np.bincount(pair, minlength=pairs)
    drawn_a, drawn_b = np.zeros((resamples + 1, pairs), np.int64), np.zeros((resamples + 1, pairs), np.int64)
    generator = np.random.default_rng(seed)
    for p in np.unique(pair):
        own = cells[0] == p
        outcomes = generator.multinomial(totals[p], numbers[own] / totals[p], size=resamples)  # (resamples, outcomes)
        outcomes = np.concatenate([numbers[own][None], outcomes])  # first as it is
        drawn_a[:, p], drawn_b[:, p] = outcomes @ cells[1, own], outcomes @ cells[2, own]
    shape = num_domains, num_classes
    views = [
        view(hits.reshape(-1, *shape), totals.reshape(shape) * runs, of)
        for hits, runs in ((drawn_a, len(a)), (drawn_b, len(b)))
    ]
    estimate, *rest = views[0] - views[1]
    drawn = np.asarray(rest)
    low, high = percentile_interval(drawn, confidence)
    # A draw that is 0 but for rounding counts for both sides.
    rarer = int(min(np.sum(drawn <= 1e-12), np.sum(drawn >= -1e-12)))
    return Difference(float(estimate), low, high, min(1.0, 2 * (rarer + 1) / (resamples + 1)))


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, expected a number between 0 and 1, such as 0.95")
    return confidence
