"""Accuracy: the share of samples that are classified correctly."""

import numpy as np

from crosstail.metrics._metric import Metric
from crosstail.metrics._pairs import PairAccuracy
from crosstail.metrics._values import by_sample

METRIC = Metric(
    label="accuracy",
    of=PairAccuracy.of,
    needs="predicted",
    by_sample=by_sample(lambda answers: answers.correct.astype(np.float64)),
)
