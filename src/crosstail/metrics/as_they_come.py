"""Accuracy of samples as they come: each pair weighs as much as it has training samples, and answers know that.

The answers are those of `predict --site SITE --prior train`, which takes into account how frequent each class was at
the site in training.
"""

from dataclasses import replace

import numpy as np

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import Metric
from crosstail.metrics._pairs import PairAccuracy
from crosstail.metrics._values import SampleValues, aggregated, means


def by_prevalence(answers: Answers) -> Answers:
    """The same samples with the answers for the prevalence of the classes at their site, which the model is told.

    Answers of a calibrated run have them; otherwise the correction is fitted on these samples.
    """
    told = answers.told if answers.told.by_prevalence is not None else corrected(answers.told, answers.told)
    assert told.by_prevalence is not None
    return replace(told, predicted=told.by_prevalence, informed=None)


def corrected(answers: Answers, validation: Answers) -> Answers:
    """Answers with those for the prevalence, by a correction that is fitted on validation samples."""
    from crosstail.metrics._calibration import decided_by_prevalence, fit_prevalence  # here, because it imports torch

    return decided_by_prevalence(answers, fit_prevalence(validation))


def sampled(answers: Answers) -> SampleValues:
    """With the influence of each sample; those of pairs without training samples do not count."""
    said, weights = by_prevalence(answers), answers.counts.astype(np.float64)
    said = said.keep(weights.ravel()[said.pair] > 0)
    computed = means(said.correct.astype(np.float64), said.pair, said.counts.size, said.group)
    present = np.where(np.isnan(computed.values).reshape(weights.shape), 0.0, weights)
    return aggregated(said, computed, present, overall=weights)


METRIC = Metric(
    label="accuracy as they come",
    of=lambda answers: PairAccuracy.of(by_prevalence(answers)).weighted(answers.counts),
    by_sample=sampled,
    frequent=True,
    prepared=corrected,
)
