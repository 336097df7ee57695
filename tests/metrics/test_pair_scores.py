"""What can be selected on, against scikit-learn and loops."""

import math
from statistics import fmean

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss

from crosstail.criterion import score
from crosstail.metrics import PairAccuracy
from crosstail.metrics import PairScores

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
    assert PairScores.of(*samples, NUM_DOMAINS).macro_f1 == pytest.approx(expected)


def test_every_pair_with_samples_weighs_the_same_in_the_log_loss(samples):
    _, log_p, y, domain = samples
    pairs = sorted(set(zip(domain.tolist(), y.tolist(), strict=True)))
    assert len(pairs) < NUM_DOMAINS * NUM_CLASSES
    labels = list(range(NUM_CLASSES))
    each = [
        log_loss(y[own], np.exp(log_p[own]), labels=labels) for d, c in pairs if any(own := (domain == d) & (y == c))
    ]
    assert PairScores.of(*samples, NUM_DOMAINS).log_loss == pytest.approx(fmean(each))


def test_accuracies_are_those_of_the_pairs_with_samples(samples):
    predicted, _, y, domain = samples
    found = PairScores.of(*samples, NUM_DOMAINS)
    sizes = {"num_domains": NUM_DOMAINS, "num_classes": NUM_CLASSES}
    expected = PairAccuracy.from_predictions(predicted, y, domain, **sizes)
    for on in ("pair_average", "average", "worst_domain", "worst_pair"):
        assert found.value(on) == getattr(expected, on)


def test_the_sums_of_parts_add_up_to_those_of_the_whole(samples):
    whole = PairScores.of(*samples, NUM_DOMAINS)
    parts = [PairScores.of(*(values[i::3] for values in samples), NUM_DOMAINS) for i in range(3)]
    again = PairScores(sum(part.counts for part in parts), sum(part.losses for part in parts))
    assert (again.macro_f1, again.log_loss) == (whole.macro_f1, whole.log_loss)


@pytest.mark.parametrize("log_p", [-math.inf, -6e4, math.nan])
def test_an_impossible_class_has_a_large_but_finite_loss(log_p):
    found = PairScores.of([0], np.array([[0.0, log_p]]), [1], [0], 1)
    assert found.log_loss == pytest.approx(-math.log(1e-12))


def test_without_samples_there_is_nothing_to_select_on():
    found = PairScores.of([], np.empty((0, 2)), [], [], 1)
    for on in ("macro_f1", "log_loss", "worst_pair"):
        assert found.value(on) is found.score(on) is None


def test_larger_scores_are_better_and_the_pair_average_decides_between_equal_worst_pairs():
    assert score(0.2, None, "log_loss") > score(0.3, None, "log_loss")
    for on in ("worst_domain", "worst_pair"):
        assert score(0.0, 0.1, on) < score(0.0, 0.2, on) < score(0.01, 0.0, on)
    assert score(0.5, 0.1, "average") == score(0.5, 0.9, "average") == 0.5
