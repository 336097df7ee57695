"""Balanced accuracy: the accuracy of each class, averaged over the classes of a domain."""

import numpy as np

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import Metric
from crosstail.metrics._pairs import PairAccuracy
from crosstail.metrics._values import Computed, by_class, means


def recall(answers: Answers) -> Computed:
    """The share of the samples of a class in a domain that are recognised."""
    return means(answers.correct.astype(np.float64), answers.pair, answers.counts.size, answers.group)


METRIC = Metric(
    label="balanced accuracy",
    of=lambda answers: PairAccuracy.of(answers).by_class(),
    needs="predicted",
    by_sample=by_class(recall),
)
