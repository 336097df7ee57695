"""What held-out samples would be answered, each by thresholds from others of them."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data.splits.groups import fold_of
from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.metrics._link import training_shares
from crosstail.prediction.critical import Alarms
from crosstail.prediction.decision import Decided, Decision
from crosstail.prediction.sets import COVERAGE, PredictionSets

FOLDS, MANY = 5, 20  # parts; many for critical classes, of which a part less may be too few
Rows = NDArray[np.bool_]


def covered(
    test: Answers,
    given: Calibration,
    coverage: float = COVERAGE,
    prior: str | None = None,
    recalls: Mapping[int, float] | None = None,
) -> pd.DataFrame:
    """A row for each test sample: domain, class, whether its set contains it, the set's size, whether to review it.

    Its site is known; with any `prior`, classes are as frequent as in training there. Thresholds come from other test
    samples, in turns, with groups kept whole.
    """
    decision, said = _decided(test, given, prior)
    own, members = said[np.arange(len(said)), test.y], np.ones(said.shape, bool)
    sizes = {"num_sites": len(test.domains), "num_classes": said.shape[1]}
    for rest, now in _turns(test, FOLDS):
        sets = PredictionSets.calibrated(own[rest], test.y[rest], test.domain[rest], **sizes, coverage=coverage)
        found, _ = replace(decision, sets=sets).answers(said[now], test.domain[now])
        assert found is not None
        members[now] = found
    alarms = None
    if recalls:
        _, alarms = flagged(test, given, recalls, prior)
        members[:, [*recalls]] |= alarms
    about = {"inside": members[np.arange(len(test)), test.y], "size": members.sum(1)}
    review = Decided(slice(None), said, members, alarms).review
    return pd.DataFrame({"domain": test.domain, "class": test.y, **about, "review": review})


def flagged(
    test: Answers, given: Calibration, recalls: Mapping[int, float], prior: str | None = None
) -> tuple[Alarms, NDArray[np.bool_]]:
    """Thresholds for critical classes, and which test samples (N, K) are flagged by thresholds from others of them."""
    decision, said = _decided(test, given, prior)
    own, found = said[np.arange(len(said)), test.y], np.ones((len(test), len(recalls)), bool)

    def alarms(rows: Rows) -> Alarms:
        group = None if test.group is None else test.group[rows]
        return Alarms.calibrated(own[rows], test.y[rows], test.domain[rows], group, recalls, len(test.domains))

    for rest, now in _turns(test, MANY):
        _, raised = replace(decision, alarms=alarms(rest)).answers(said[now], test.domain[now])
        assert raised is not None
        found[now] = raised
    return alarms(np.ones(len(test), bool)), found


def _decided(test: Answers, given: Calibration, prior: str | None) -> tuple[Decision, NDArray[np.float32]]:
    """The probabilities, and what else is known of the sites."""
    log_p, decision = test.told.log_p, Decision(given, list(test.domains))
    assert log_p is not None
    if prior is not None:
        decision = replace(decision, shares=training_shares(test.counts), correction=given.prevalence)
    return decision, decision.probabilities(log_p, test.domain)


def _turns(test: Answers, folds: int) -> Iterator[tuple[Rows, Rows]]:
    """The samples that thresholds come from, and those that they are for; none where there is a single group."""
    groups = len(test) if test.group is None else len(np.unique(test.group))
    fold = fold_of(test.pair, test.group, min(folds, groups), seed=0) if groups > 1 else np.zeros(len(test), np.int64)
    for k in range(int(fold.max()) + 1):
        yield fold != k, fold == k
