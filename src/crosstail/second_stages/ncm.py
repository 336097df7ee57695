"""Nearest class mean: the class whose mean feature has the smallest angle to the sample's (Kang et al., 2020)."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from crosstail.second_stages._stage import Features, FittedStage, LinearHead

SHARPEST = 1e3  # largest factor of a cosine


def class_means(features: Features) -> NDArray[np.float64]:
    """The mean feature of every class over its training samples, scaled to unit length (C, F); 0 without samples."""
    num_features, _, num_classes = features.sizes
    sums = np.zeros((num_classes, num_features))
    for z, y, _ in features.parts():
        order = np.argsort(y, kind="stable")
        found, first = np.unique(y[order], return_index=True)
        sums[found] += np.add.reduceat(z[order], first, dtype=np.float64)
    lengths = np.linalg.norm(sums, axis=1, keepdims=True)
    return np.divide(sums, lengths, out=np.zeros_like(sums), where=lengths > 0)


def sharpness(scores: NDArray[np.float64], y: NDArray[np.int64], weights: NDArray[np.float64]) -> float:
    """The factor s at which softmax(s · scores) has the smallest weighted log loss, a convex function of s."""

    def loss(log_s: float) -> float:
        scaled = np.exp(log_s) * scores
        return float(weights @ (logsumexp(scaled, axis=1) - scaled[np.arange(len(y)), y]))

    found = minimize_scalar(loss, bounds=(0.0, np.log(SHARPEST)), method="bounded")
    return float(np.exp(found.x))


def fit(features: Features) -> LinearHead:
    """Scores s · cos(z, mean of c), with s by log loss on validation (else training), every pair weighing the same.

    A class without training samples scores less than any other can.
    """
    means, present = class_means(features), features.counts.sum(0) > 0
    judged = features.validation or features
    z = np.asarray(judged.z, np.float64)
    cosines = z @ means.T / np.maximum(np.linalg.norm(z, axis=1, keepdims=True), 1e-12)
    known = present[judged.y]
    pair = judged.domain * len(present) + judged.y
    weights = known / np.bincount(pair)[pair]
    s = sharpness(np.where(present, cosines, -2.0), np.where(known, judged.y, present.argmax()), weights)
    return LinearHead.of(s * means, np.where(present, 0.0, -2.0 * s), unit=True)


STAGE = FittedStage(fit=fit, head=LinearHead)
