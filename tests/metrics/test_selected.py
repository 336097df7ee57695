"""What can be selected on, against scikit-learn and loops."""

import math
from statistics import fmean

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss
from tests.metrics.answered import answered

from crosstail.metrics import PairAccuracy, criteria, score, value_on

NUM_DOMAINS, NUM_CLASSES = 3, 4


@pytest.fixture
def samples():
    """Predicted classes, log probabilities, classes and domains; a class and several pairs have no samples."""
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(NUM_CLASSES), 60)
    y, domain = rng.integers(0, NUM_CLASSES - 1, 60), rng.integers(0, NUM_DOMAINS, 60)
    y[domain == 1] = 0
    return p.argmax(1), np.log(p), y, domain


def test_macro_f1_is_that_of_the_classes_with_samples(samples):
    predicted, _, y, _ = samples
    assert (predicted == NUM_CLASSES - 1).any()  # a class without samples is predicted
    expected = f1_score(y, predicted, labels=sorted(set(y)), average="macro")
    assert value_on(answered(*samples, NUM_DOMAINS), "macro_f1") == pytest.approx(expected)


def test_every_pair_with_samples_weighs_the_same_in_the_log_loss(samples):
    _, log_p, y, domain = samples
    pairs = sorted(set(zip(domain.tolist(), y.tolist(), strict=True)))
    assert len(pairs) < NUM_DOMAINS * NUM_CLASSES
    labels = list(range(NUM_CLASSES))
    each = [
        log_loss(y[own], np.exp(log_p[own]), labels=labels) for d, c in pairs if any(own := (domain == d) & (y == c))
    ]
    assert value_on(answered(*samples, NUM_DOMAINS), "log_loss") == pytest.approx(fmean(each))


def test_accuracies_are_those_of_the_pairs_with_samples(samples):
    predicted, _, y, domain = samples
    found = answered(*samples, NUM_DOMAINS)
    sizes = {"num_domains": NUM_DOMAINS, "num_classes": NUM_CLASSES}
    expected = PairAccuracy.from_predictions(predicted, y, domain, **sizes)
    for on in ("pair_average", "average", "worst_domain", "worst_pair"):
        assert value_on(found, on) == getattr(expected, on)


@pytest.mark.parametrize("on", criteria())
def test_samples_may_come_in_any_order(samples, on):
    found = answered(*samples, NUM_DOMAINS)
    assert value_on(found.keep(np.random.default_rng(1).permutation(len(found))), on) == pytest.approx(
        value_on(found, on), abs=1e-9
    )


@pytest.mark.parametrize("log_p", [-math.inf, -6e4, math.nan])
def test_an_impossible_class_has_a_large_but_finite_loss(log_p):
    found = answered([0], [[0.0, log_p]], [1], [0], 1)
    assert value_on(found, "log_loss") == pytest.approx(-math.log(1e-12))


def test_without_samples_there_is_nothing_to_select_on():
    found = answered([], np.empty((0, 2)), [], [], 1)
    for on in criteria():
        assert value_on(found, on) is score(value_on(found, on), None, on) is None


def test_larger_scores_are_better_and_the_pair_average_decides_between_equal_worst_pairs():
    assert score(0.2, None, "log_loss") > score(0.3, None, "log_loss")
    for on in ("worst_domain", "worst_pair"):
        assert score(0.0, 0.1, on) < score(0.0, 0.2, on) < score(0.01, 0.0, on)
    assert score(0.5, 0.1, "average") == score(0.5, 0.9, "average") == 0.5
