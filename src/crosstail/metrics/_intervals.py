"""Confidence intervals for accuracies."""

from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray


def wilson(hits: Any, total: Any, confidence: float = 0.95) -> tuple[Any, Any]:
    """Wilson's score interval for one proportion, numbers or elementwise arrays (Wilson, 1927).

    Unlike a bootstrap, it has positive width even at 0 or `total` hits. Without samples it is (0, 1).

    >>> low, high = wilson(10, 10)
    >>> print(f"{low:.4f} to {high:.4f}")
    0.7225 to 1.0000
    """
    hits, total = np.asarray(hits), np.asarray(total)
    if np.any((hits < 0) | (hits > total)):
        raise ValueError("hits must be between 0 and the total")
    z = NormalDist().inv_cdf((1 + _checked(confidence)) / 2)

    def lower(k: NDArray[Any]) -> NDArray[np.float64]:
        spread = k * (total - k) / np.where(total > 0, total, 1) + z * z / 4
        return np.asarray((k + z * z / 2 - z * np.sqrt(spread)) / (total + z * z))

    # The upper bound by symmetry, so that it is exactly 1 when every sample is a hit, as the lower is 0 at none.
    low, high = lower(hits), 1 - lower(total - hits)
    return (low, high) if low.ndim else (float(low), float(high))


def average_interval(
    hits: NDArray[Any], totals: NDArray[Any], weights: NDArray[np.float64], confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Wilson's interval for Σ w h / n, an average over pairs, with an effective number of samples.

    `hits` are (..., P), `totals` and `weights` (P,); weights sum to 1, and are 0 where there are no test samples. The
    effective number gives a single proportion the variance of the average, m = θ (1 − θ) / Σ w² v / n with
    θ = Σ w p. Accuracies p = (h + ½) / (n + 1) are smoothed (Jeffreys), so that a pair with only right answers has a
    variance too; v = p (1 − p) / (1 − (1 − w) n / (n + 1)²) makes up for the noise of p, which looks like differences
    between pairs. A single pair has m = n. docs/decisions/intervals.md has the coverage.
    """
    tested = totals > 0
    h, n, w = hits[..., tested], totals[tested], weights[tested]
    p = (h + 0.5) / (n + 1)  # (..., P)
    smoothed, variance = p @ w, p * (1 - p) / (1 - (1 - w) * n / (n + 1) ** 2) @ (w * w / n)
    effective = smoothed * (1 - smoothed) / variance
    # Clipped and rounded: a sum of weights may miss 1 by an ulp.
    average = np.clip(np.round((h / n) @ w, 12), 0, 1)
    return wilson(np.asarray(average * effective), effective, confidence)


def mean_interval(values: ArrayLike, confidence: float = 0.95) -> tuple[float, float]:
    """Student's interval of the mean of independent values, such as one for each seed; a single value says nothing."""
    values = np.asarray(values, float)
    if len(values) < 2:
        return -np.inf, np.inf
    from scipy.special import stdtrit  # here, because `crosstail status` does not need it

    half = float(stdtrit(len(values) - 1, (1 + _checked(confidence)) / 2) * values.std(ddof=1) / len(values) ** 0.5)
    return float(values.mean()) - half, float(values.mean()) + half


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, expected a number between 0 and 1, such as 0.95")
    return confidence
