"""Nearest class mean: the class whose mean feature has the smallest angle to the sample's (Kang et al., 2020)."""

import numpy as np
from numpy.typing import NDArray

from crosstail.second_stages._choice import sharpness
from crosstail.second_stages._linear import LinearHead
from crosstail.second_stages._stage import Features, FittedStage

MOST = 20_000  # training samples that the sharpness is chosen on, where there are no validation samples


def class_means(features: Features) -> NDArray[np.float64]:
    """The mean feature of every class (C, F), each of its pairs weighing the same; 0 for a class without samples."""
    present, number, size = np.unique(features.pair, return_inverse=True, return_counts=True)
    sums = np.zeros((len(present), features.sizes[0]))
    start = 0
    for z, y, _ in features.parts():
        pair = number[start : start + len(y)]
        order = np.argsort(pair, kind="stable")
        found, first = np.unique(pair[order], return_index=True)
        sums[found] += np.add.reduceat(z[order], first, dtype=np.float64)
        start += len(y)
    member = present % features.sizes[2] == np.arange(features.sizes[2])[:, None]  # (C, P)
    return member @ (sums / size[:, None]) / np.maximum(member.sum(1, keepdims=True), 1)


def fit(features: Features) -> LinearHead:
    """Scores s · cos(z, mean of class c); s is chosen by log loss on validation, or else on training samples.

    A class without training samples has a score below all that a cosine can give.
    """
    means, bias = class_means(features), np.where(features.counts.sum(0) > 0, 0.0, -2.0)
    means /= np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)
    some = np.random.default_rng(features.seed).permutation(len(features.y))[:MOST]
    judged = features.validation or features.keep(some)
    s = sharpness(judged.scored(LinearHead.of(means, bias, unit=True)), judged)
    return LinearHead.of(s * means, s * bias, unit=True)


STAGE = FittedStage(
    fit=fit,
    head=LinearHead,
    differs=(
        "the mean of a class is that of its pairs' means, so that it is not the mean of the domain with most samples",
        "cosines are multiplied by one number, chosen by log loss, so that their softmax are probabilities",
    ),
)
