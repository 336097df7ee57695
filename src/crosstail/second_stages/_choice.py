"""Parameters that a second stage chooses: on the validation samples, with all pairs weighted equally."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import log_softmax, logsumexp

from crosstail.metrics import Answers, score, value_on
from crosstail.second_stages._stage import Features

SHARPEST = 1e3


def first_best(values: Iterable[float], scores: Callable[[float], NDArray[Any]], on: Features) -> float:
    """The first of the values whose scores (N, C) are best on these samples, by what is to be selected on."""
    names: list[list[str]] = [list(map(str, range(number))) for number in on.sizes[1:]]

    def quality(value: float) -> float:
        found = scores(value)
        log_p = log_softmax(found, axis=1)
        said = {"predicted": found.argmax(1), "log_p": log_p, "true": log_p[np.arange(len(on.y)), on.y]}
        of = Answers(domains=names[0], classes=names[1], counts=on.counts, y=on.y, domain=on.domain, **said)
        judged = score(value_on(of, on.select_on), of.value().pair_average, on.select_on)
        return round(judged or 0.0, 9)  # so that the same number of hits in other pairs is a tie

    return max(values, key=quality)  # of several maxima, `max` returns the first


def sharpness(scores: NDArray[Any], on: Features) -> float:
    """The factor s ≥ 1 at which softmax(s · scores) has the smallest log loss, with all pairs weighted equally."""
    known = on.counts.sum(0)[on.y] > 0  # no head can know a class without training samples
    weights = known / np.bincount(on.pair)[on.pair]
    own = scores[np.arange(len(on.y)), on.y]

    def loss(log_s: float) -> float:
        s = np.exp(log_s)
        return float(weights @ (logsumexp(s * scores, axis=1) - s * own))

    found = minimize_scalar(loss, bounds=(0.0, np.log(SHARPEST)), method="bounded")
    return float(np.exp(found.x))
