"""AUROC: how well the score of a class separates its samples from the others of the domain."""

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import Metric
from crosstail.metrics._values import Computed, by_class
from crosstail.pairs import pair_number


def one_against_the_others(answers: Answers) -> Computed:
    """The probability that a sample of the class scores higher than another of the domain; ties count half.

    The influence is by the components of DeLong et al. (1988): for a sample of the class, the share of the others with
    a lower score, and the other way round.
    """
    assert answers.log_p is not None
    p, classes = np.exp(answers.log_p.astype(np.float64)), len(answers.classes)
    found, errors = np.full((2, answers.counts.size), np.nan)
    influence = np.zeros(len(answers))
    for d in range(len(answers.domains)):
        rows = np.flatnonzero(answers.domain == d)
        for c in np.unique(answers.y[rows]):
            positive = answers.y[rows] == c
            n = np.where(positive, positive.sum(), (~positive).sum())
            if positive.all():
                continue
            scores = p[rows, c]
            within = np.empty(len(rows))
            for side in (positive, ~positive):
                within[side] = _ranks(scores[side])
            below = (_ranks(scores) - within) / (len(rows) - n)  # share of the other side with lower scores
            component = np.where(positive, below, 1 - below)
            pair = pair_number(c, d, classes)
            found[pair] = component[positive].mean()
            own = (component - found[pair]) / n * np.sqrt(n / (n - 1).clip(1))
            errors[pair] = np.sqrt((own**2).sum())
            influence[rows] += own
    return Computed(found, errors, influence)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """From 1, where equal values share the mean of their ranks; SciPy has this too, but every fit would import it."""
    _, of, same = np.unique(values, return_inverse=True, return_counts=True)
    found: NDArray[np.float64] = (np.cumsum(same) - (same - 1) / 2)[of]
    return found


METRIC = Metric(label="AUROC", of=by_class(one_against_the_others))
