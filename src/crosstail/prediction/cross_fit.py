"""What held-out samples would be answered, each by thresholds from others of them."""

import numpy as np
import pandas as pd

from crosstail.data.splits.groups import fold_of
from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.metrics._link import training_shares, with_prior
from crosstail.prediction.sets import COVERAGE, PredictionSets

FOLDS = 5


def covered(test: Answers, given: Calibration, coverage: float = COVERAGE, prior: str | None = None) -> pd.DataFrame:
    """A row for each test sample: domain, class, whether its set contains it, and the size of the set.

    Its site is known; with any `prior`, classes are as frequent as in training there. Thresholds come from other test
    samples, in turns, with groups kept whole.
    """
    log_p, pair, shares = test.told.log_p, test.pair, training_shares(test.counts)[test.domain]
    assert log_p is not None
    if prior is None:
        said = given.probabilities(log_p, test.domain, test.domains)
    else:
        said = with_prior(given.prevalence(log_p), shares)
    own, members = said[np.arange(len(said)), test.y], np.ones(said.shape, bool)
    sizes = {"num_sites": len(test.domains), "num_classes": said.shape[1]}
    groups = len(pair) if test.group is None else len(np.unique(test.group))
    fold = fold_of(pair, test.group, min(FOLDS, groups), seed=0) if groups > 1 else np.zeros(len(pair), np.int64)
    for k in range(int(fold.max()) + 1):
        rest, now = fold != k, fold == k
        sets = PredictionSets.calibrated(own[rest], test.y[rest], test.domain[rest], **sizes, coverage=coverage)
        members[now] = sets.members(said[now], test.domain[now])
    if prior is not None:
        members &= shares > 0  # a class that does not occur at a site is in no set
    inside = members[np.arange(len(pair)), test.y]
    return pd.DataFrame({"domain": test.domain, "class": test.y, "inside": inside, "size": members.sum(1)})
