"""Numbers that a second stage chooses: on the validation samples, with every pair weighing the same."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from crosstail.metrics import PairAccuracy
from crosstail.second_stages._stage import Features

SHARPEST = 1e3


def first_best(values: Iterable[float], scores: Callable[[float], NDArray[Any]], on: Features) -> float:
    """The first of the values whose scores (N, C) have the best pair average on these samples."""
    _, num_domains, num_classes = on.sizes

    def pair_average(value: float) -> float:
        predicted = scores(value).argmax(1)
        sizes = {"num_domains": num_domains, "num_classes": num_classes}
        found = PairAccuracy.from_predictions(predicted, on.y, on.domain, **sizes).pair_average
        return round(found or 0.0, 9)  # so that the same number of hits in other pairs is a tie

    return max(values, key=pair_average)  # of several maxima, `max` returns the first


def sharpness(scores: NDArray[Any], on: Features) -> float:
    """The factor s ≥ 1 at which softmax(s · scores) has the smallest log loss, with every pair weighing the same."""
    known = on.counts.sum(0)[on.y] > 0  # no head can know a class without training samples
    weights = known / np.bincount(on.pair)[on.pair]
    own = scores[np.arange(len(on.y)), on.y]

    def loss(log_s: float) -> float:
        s = np.exp(log_s)
        return float(weights @ (logsumexp(s * scores, axis=1) - s * own))

    found = minimize_scalar(loss, bounds=(0.0, np.log(SHARPEST)), method="bounded")
    return float(np.exp(found.x))
