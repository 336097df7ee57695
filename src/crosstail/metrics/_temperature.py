"""Temperatures: one for all samples, or one per site where its samples support it, if they help at all."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics._link import in_place

LARGEST = 5.0  # |log sharpness|: where samples are separated perfectly, the best would be infinite
FOLDS = 5
CROSS_FITTED = 2**22  # scores at most, of every k-th sample


class Fitted(NamedTuple):
    """Log sharpness and its squared standard error."""

    log_sharpness: float
    squared_error: float


def fit_sharpness(log_p: NDArray[np.floating], y: NDArray[np.int64], weights: NDArray[np.float64]) -> Fitted:
    """The s = 1/T with the smallest Σ w (log Σ_c p_c^s − s log p_y), by Newton's method in log s.

    The loss is convex in s. Its standard error is the robust one, as weights are not counts.
    """
    log_p = np.asarray(log_p, np.float32)
    own = log_p[np.arange(len(y)), y].astype(np.float64)
    value = 0.0
    for _ in range(100):
        s = np.exp(value)
        p, _ = in_place(np.float32(s) * log_p)
        p *= log_p
        mean = p.sum(1, dtype=np.float64)
        score = s * weights * (mean - own)
        p *= log_p
        variance = (p.sum(1, dtype=np.float64) - mean**2).clip(0)
        information = float(s * s * (weights * variance).sum())
        curvature = max(information + float(score.sum()), information, 1e-12)  # of log s, kept positive
        step = np.clip(float(score.sum()) / curvature, -1, 1)
        value = float(np.clip(value - step, -LARGEST, LARGEST))
        if abs(step) < 1e-6 or abs(value) == LARGEST:
            break
    return Fitted(value, float((score**2).sum()) / max(information, 1e-12) ** 2 if information > 1e-9 else np.inf)


def shrunk(sites: list[Fitted], common: float) -> list[float]:
    """Log sharpness of each site, shrunk towards the common value in proportion to its error.

    The variance between sites is DerSimonian's and Laird's (1986): what the estimates differ by beyond their errors.
    """
    known = [(one.log_sharpness, 1 / max(one.squared_error, 1e-12)) for one in sites if np.isfinite(one.squared_error)]
    between = 0.0
    if len(known) > 1:
        values, precision = np.array(known).T
        centre = float(precision @ values / precision.sum())
        spread = float(precision @ (values - centre) ** 2) - (len(values) - 1)
        others = float(precision.sum() - (precision**2).sum() / precision.sum())  # 0 if one is infinitely precise
        between = max(0.0, spread / others) if others > 0 else 0.0
    share = [between / (between + one.squared_error) if between else 0.0 for one in sites]
    return [common + k * (one.log_sharpness - common) if k else common for k, one in zip(share, sites, strict=True)]


def fit_sites(
    log_p: NDArray[np.floating], y: NDArray[np.int64], site: NDArray[np.int64], weights: NDArray[np.float64], sites: int
) -> NDArray[np.float64]:
    """Log sharpness of each site (D,), shrunk towards the common one."""
    common = fit_sharpness(log_p, y, weights)
    if sites == 1:
        return np.array([common.log_sharpness])
    own = [
        fit_sharpness(log_p[mine], y[mine], weights[mine]) if (mine := site == d).any() else Fitted(0.0, np.inf)
        for d in range(sites)
    ]
    return np.array(shrunk(own, common.log_sharpness))


def kept_if_it_helps(
    log_p: NDArray[np.floating], y: NDArray[np.int64], site: NDArray[np.int64], weights: NDArray[np.float64], sites: int
) -> list[float]:
    """Sharpness of each site, or 1 for all, if that has a lower loss on samples that the others are not fitted on.

    The samples are split into five parts, with a fifth of each class of a site in each.
    """
    some = slice(None, None, -(-log_p.size // CROSS_FITTED))
    p, of, at, w = log_p[some], y[some], site[some], weights[some]
    fold = np.empty(len(of), np.int64)
    fold[np.lexsort((of, at))] = np.arange(len(of)) % FOLDS
    gain = 0.0
    for k in range(min(FOLDS, len(of)) if len(of) > 1 else 0):
        rest, own = fold != k, fold == k
        s = np.exp(fit_sites(p[rest], of[rest], at[rest], w[rest], sites))[at[own]]
        gain += float(w[own] @ (_loss(p[own], of[own], np.ones_like(s)) - _loss(p[own], of[own], s)))
    return np.exp(fit_sites(log_p, y, site, weights, sites)).tolist() if gain > 0 else [1.0] * sites


def _loss(log_p: NDArray[np.floating], y: NDArray[np.int64], s: NDArray[np.float64]) -> NDArray[np.float64]:
    """The log loss of each sample (N,) with its sharpness."""
    scores = (np.asarray(log_p, np.float32) * s[:, None].astype(np.float32)).astype(np.float32)
    own = scores[np.arange(len(y)), y].astype(np.float64)
    largest = scores.max(axis=1, keepdims=True)
    return np.log(np.exp(scores - largest).sum(axis=1, dtype=np.float64)) + largest[:, 0] - own
