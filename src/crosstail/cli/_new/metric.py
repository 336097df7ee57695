"""A metric for Crosstail: --metric ./mine.py, or --select-on ./mine.py."""

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics import Answers, Metric, by_sample


def probability(answers: Answers) -> NDArray[np.float64]:
    """The value of each sample (N,), from true classes y, predicted ones, domains, and log probabilities."""
    assert answers.true is not None
    return np.exp(answers.true.astype(float))


# by_sample averages over the samples of a pair, by_class and by_group take a function of several samples.
METRIC = Metric(label="probability of the true class", of=by_sample(probability), needs="true")
