"""Log loss: −log of the probability of the true class."""

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import Metric
from crosstail.metrics._values import by_sample

LEAST = 1e-12  # probability that a log loss is of, at least: one sample must not decide a mean


def losses(answers: Answers) -> NDArray[np.float64]:
    """−log p of the true class of every sample (N,), at most −log(10⁻¹²), as of NaN."""
    assert answers.true is not None
    true = answers.true.astype(np.float64)
    return -np.where(true > np.log(LEAST), true, np.log(LEAST))


def rounded(answers: Answers) -> float | None:
    """The mean over pairs, rounded: it does not depend on the last bits, which differ between machines."""
    value = METRIC.values(answers).pair_average
    return None if value is None else round(value, 9)


METRIC = Metric(
    label="log loss",
    of=by_sample(losses),
    needs="true",
    higher_is_better=False,
    most=np.inf,
    selected=rounded,
)
