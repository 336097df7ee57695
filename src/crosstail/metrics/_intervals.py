"""Confidence intervals for accuracies and for the difference between two models."""

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.metrics._views import View, cells, pair_index, view


@overload
def wilson(hits: float, total: float, confidence: float = 0.95) -> tuple[float, float]: ...
@overload
def wilson(
    hits: NDArray[Any], total: NDArray[Any] | int, confidence: float = 0.95
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def wilson(hits: Any, total: Any, confidence: float = 0.95) -> tuple[Any, Any]:
    """Wilson's score interval for one proportion, elementwise (Wilson, 1927).

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


@dataclass(frozen=True)
class Difference:
    """Difference between two accuracies, its confidence interval, and a two-sided p-value."""

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
    group: ArrayLike | None = None,
    of: View = "pair_average",
    confidence: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> Difference:
    """Accuracy of model a minus model b on the same test samples, by a paired bootstrap within each pair.

    `correct_a` and `correct_b` are boolean, (N,) for one run or (R, N) for R runs whose accuracies are averaged. Both
    models see the same resample, so samples that are hard for both cancel out. The interval is the percentile
    interval of the draws. For a worst-case view it is approximate, because resampling biases a minimum downwards,
    although for both models. The p-value is from a permutation test, which swaps the answers of the two models at
    random: it is exact however few the samples on which they differ.

    Samples with the same number in `group` depend on each other: what is resampled is the groups of a pair, each
    with all its samples there, and without groups the samples. A group with samples in two pairs counts as two.

    The bootstrap is smoothed: a pair's groups are joined by two pseudo-groups, distributed as in all pairs plus
    half a group of mean size of each of right/right, right/wrong, wrong/right, wrong/wrong. Otherwise, a pair with a
    single group would have no variance. The same four halves are also spread over all pairs (Agresti & Min, 2005), so
    that models that differ on a few samples only, all in favour of one, are not taken to be different. The draws are
    then shifted back, so that smoothing does not bias them.

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
            found = f"{correct.dtype} of shape {correct.shape}"
            raise ValueError(f"{name} is {found}, expected bool of shape {pair.shape}: pass predicted == y")
    if not len(pair):
        raise ValueError("no test samples to compare the models on")

    # A group's outcome is its size, and how often a and b are right in all runs. Resampling a pair with replacement is
    # therefore a multinomial draw over outcomes, which avoids a (resamples, N) table of indices.
    a, b = np.atleast_2d(a), np.atleast_2d(b)
    cell, pair_of = cells(pair, group)  # (N,), (G,)
    mean_size = len(pair) / len(pair_of)
    seen = [np.bincount(cell, values) for values in (a.sum(axis=0), b.sum(axis=0), np.ones(len(pair)))]
    corners = mean_size * np.array([[0, 0, len(a), len(a)], [0, len(b), 0, len(b)], [1, 1, 1, 1]])
    every = np.concatenate([seen, corners], axis=1)
    outcomes, which = np.unique(every, axis=1, return_inverse=True)  # (3, K), (G + 4,)
    pairs, kinds = num_domains * num_classes, outcomes.shape[1]
    numbers = np.bincount(pair_of * kinds + which[:-4], minlength=pairs * kinds).reshape(pairs, kinds)
    groups, totals = numbers.sum(axis=1), np.bincount(pair, minlength=pairs)
    halves, share = np.bincount(which[-4:], minlength=kinds) / 2, (groups / groups.sum())[:, None]
    pooled = numbers.sum(axis=0) + halves
    smoothed = numbers + 2 * pooled / pooled.sum() + share * halves  # (P, K)
    expected = groups[:, None] * smoothed / (groups[:, None] + 2 + 2 * share)
    drawn_a, drawn_b = np.zeros((2, resamples + 2, pairs))
    swapped_a, swapped_b = np.zeros((2, resamples, pairs))
    right_a, right_b = outcomes[0] / len(a), outcomes[1] / len(b)
    generator, swapper = np.random.default_rng(seed), np.random.default_rng([seed, 1])
    for p in np.flatnonzero(totals):
        swaps = swapper.binomial(numbers[p], 0.5, size=(resamples, kinds)) @ (right_b - right_a)
        swapped_a[:, p], swapped_b[:, p] = numbers[p] @ right_a + swaps, numbers[p] @ right_b - swaps
        drawn = generator.multinomial(groups[p], expected[p] / groups[p], size=resamples)  # (resamples, K)
        hits_a, hits_b, sizes = outcomes @ np.vstack([numbers[p], expected[p], drawn]).T
        # A pair keeps its weight, whatever the size of the groups drawn. Rounded, as a sum may miss by an ulp.
        scale = totals[p] / np.round(sizes, 9)
        drawn_a[:, p], drawn_b[:, p] = hits_a * scale, hits_b * scale
    shape = num_domains, num_classes
    accuracy_a = view(drawn_a.reshape(-1, *shape), totals.reshape(shape) * len(a), of)
    accuracy_b = view(drawn_b.reshape(-1, *shape), totals.reshape(shape) * len(b), of)
    gaps = accuracy_a - accuracy_b
    estimate, centre, rest = gaps[0], gaps[1], gaps[2:]
    # A draw without a difference stays one: the shift is no evidence.
    shifted = np.where(np.abs(rest) < 1e-12, 0.0, np.clip(rest - centre + estimate, -1, 1))
    tail = (1 - _checked(confidence)) / 2
    low, high = np.quantile(shifted, [tail, 1 - tail]).tolist()
    tables = (np.clip(hits, 0, totals).reshape(-1, *shape) for hits in (swapped_a, swapped_b))
    null = np.subtract(*(view(hits, totals.reshape(shape), of) for hits in tables))
    extreme = int(np.sum(np.abs(null) >= abs(estimate) - 1e-9))  # as far from 0, up to rounding
    return Difference(float(estimate), low, high, (extreme + 1) / (resamples + 1))


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, expected a number between 0 and 1, such as 0.95")
    return confidence
