"""Nearest class mean: the class whose mean feature has the smallest angle to the sample's (Kang et al., 2020)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.second_stages._choice import sharpness
from crosstail.second_stages._linear import LinearHead
from crosstail.second_stages._stage import Features, FittedStage

MOST = 20_000  # training samples that the sharpness is chosen on, where there are no validation samples


def class_means(features: Features) -> NDArray[np.float64]:
    """The mean feature of every class (C, F), all its pairs weighted equally; 0 for a class without samples."""
    num_features, _, num_classes = features.sizes
    present, number, size = np.unique(features.pair, return_inverse=True, return_counts=True)
    of_pairs, of_classes = np.zeros((len(present), num_features)), np.zeros((num_classes, num_features))
    start = 0
    for z, y, _ in features.parts():
        _add_rows(of_pairs, z, number[start : start + len(y)])
        start += len(y)
    _add_rows(of_classes, of_pairs / size[:, None], present % num_classes)
    return of_classes / np.maximum(np.bincount(present % num_classes, minlength=num_classes), 1)[:, None]


def _add_rows(into: NDArray[np.float64], rows: NDArray[Any], where: NDArray[np.int64]) -> None:
    order = np.argsort(where, kind="stable")
    found, first = np.unique(where[order], return_index=True)
    into[found] += np.add.reduceat(rows[order], first, dtype=np.float64)


def fit(features: Features) -> LinearHead:
    """Scores s · cos(z, mean of class c), −2 s for unknown classes; s is chosen by log loss."""
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
        "a class's mean is the mean of its pairs' means, so that the domain with most samples does not dominate",
        "cosines are multiplied by one number, chosen by log loss, so that the softmax is calibrated",
    ),
)
