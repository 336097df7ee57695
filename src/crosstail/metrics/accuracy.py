"""Accuracy: the share of samples that are classified correctly."""

from crosstail.metrics._comparisons import by_permutation
from crosstail.metrics._metric import Metric
from crosstail.metrics._pairs import PairAccuracy

METRIC = Metric(label="accuracy", of=PairAccuracy.of, needs="predicted", differ=by_permutation)
