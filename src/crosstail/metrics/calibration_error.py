"""Calibration error: how far confidence and accuracy are apart, on average over bins of about equal size."""

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import Metric
from crosstail.metrics._reliability import bins_of
from crosstail.metrics._values import Computed, by_group, root_sum


def gaps(answers: Answers, group: NDArray[np.int64], groups: int) -> Computed:
    """Σ_bins |Σ (confidence − hit)| / n of each group, as `_reliability.calibration_error`; bins are taken as fixed."""
    assert answers.log_p is not None
    confidence, hit = np.exp(answers.log_p.astype(np.float64)).max(1, initial=0.0), answers.correct
    found, value = np.full(groups, np.nan), np.zeros(len(group))
    for g in np.unique(group):
        own = group == g
        gap, of = confidence[own] - hit[own], bins_of(confidence[own], np.ones(own.sum()))
        sums, sizes = np.bincount(of, gap), np.bincount(of)
        found[g] = np.abs(sums).sum() / own.sum()
        around = gap - (sums / sizes.clip(1))[of]
        value[own] = np.sign(sums)[of] * around / own.sum() * np.sqrt(sizes / (sizes - 1).clip(1))[of]
    return Computed(found, root_sum(value, group, groups), value)


METRIC = Metric(label="calibration error", of=by_group(gaps), higher_is_better=False)
