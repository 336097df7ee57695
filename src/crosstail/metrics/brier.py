"""Brier score: the squared distance of the probabilities from the truth."""

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import Metric
from crosstail.metrics._values import by_sample


def squares(answers: Answers) -> NDArray[np.float64]:
    """Σ_c (p_c − 1[c = y])² of every sample (N,)."""
    assert answers.log_p is not None
    p = np.exp(answers.log_p.astype(np.float64))
    return np.asarray((p**2).sum(1) - 2 * p[np.arange(len(p)), answers.y] + 1)


METRIC = Metric(label="Brier score", of=by_sample(squares), higher_is_better=False, most=2.0)
