"""Metrics of probabilities per pair and domain: against the metrics of a run, scikit-learn, and samples drawn again."""

from typing import get_args

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, roc_auc_score
from tests.metrics.groups import metrics_by

from crosstail.criterion import Metric
from crosstail.metrics.pair_metrics import metric_values, standard_error

METRICS = get_args(Metric)[1:]  # without accuracy
SHAPE = 2, 3


def drawn(rng, each=None):
    """Probabilities, predicted classes, classes and domains; one pair has no samples, another one only."""
    counts = np.array([[20, 30, 0], [25, 1, 40]]) if each is None else np.full(SHAPE, each)
    domain, y = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(SHAPE))
    scores = rng.normal(size=(len(y), 3)) * (1 + domain[:, None])
    scores[np.arange(len(y)), y] += 1
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return p, p.argmax(1), y, domain


@pytest.fixture
def samples():
    return drawn(np.random.default_rng(0))


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_and_domains_are_those_of_the_tables_of_a_run(metric, samples):
    p, _, y, domain = samples
    found = metric_values(metric, *samples, SHAPE[0])
    names = {"domains": ["0", "1"], "classes": ["0", "1", "2"]}
    for row in metrics_by("pair", p, y, domain, **names).to_dict("records"):
        assert found.pairs[int(row["domain"]), int(row["class"])] == pytest.approx(row[metric], nan_ok=True)
    assert np.isnan(found.pairs[0, 2])
    of_domains = metrics_by("domain", p, y, domain, **names)[metric]
    assert found.domains.tolist() == pytest.approx(of_domains.tolist())


def test_a_pair_is_a_class_against_the_others_of_its_domain(samples):
    p, predicted, y, domain = samples
    own = domain == 1
    f1, auroc, loss = (metric_values(m, *samples, SHAPE[0]).pairs for m in ("macro_f1", "auroc", "log_loss"))
    for c in range(3):
        assert f1[1, c] == pytest.approx(f1_score(y[own] == c, predicted[own] == c))
        assert auroc[1, c] == pytest.approx(roc_auc_score(y[own] == c, p[own, c]))
        mine = own & (y == c)
        assert loss[1, c] == pytest.approx(log_loss(y[mine], p[mine], labels=[0, 1, 2]))


@pytest.mark.parametrize("metric", METRICS)
def test_standard_errors_are_the_spread_over_other_test_samples(metric):
    values, errors, of_pair = [], [], []
    for seed in range(150):
        found = metric_values(metric, *drawn(np.random.default_rng(seed), each=60), SHAPE[0])
        values.append([found.pairs.mean(), found.domains.mean(), found.pairs[0, 0]])
        errors.append([standard_error(found.influence[0]), standard_error(found.influence[1])])
        of_pair.append(found.errors[0, 0])
    spread, told = np.std(values, axis=0), [*np.mean(errors, axis=0), np.mean(of_pair)]
    # Bins of one size whose confidence is right bend |x| where it has no derivative: the error is overstated there.
    upper = 2.0 if metric == "calibration_error" else 1.2
    assert all(0.8 * s < t < upper * s for s, t in zip(spread, told, strict=True))


@pytest.mark.parametrize("metric", METRICS)
def test_copies_in_a_group_are_worth_one_sample(metric):
    once = drawn(np.random.default_rng(1), each=40)
    twice = tuple(np.concatenate([part, part]) for part in once)
    single, double = (metric_values(metric, *of, SHAPE[0]) for of in (once, twice))
    group = np.tile(np.arange(len(once[2])), 2)
    ratio = standard_error(double.influence[0], group) / standard_error(single.influence[0])
    assert ratio == pytest.approx(1, abs=0.25 if metric == "calibration_error" else 0.05)


@pytest.mark.parametrize("metric", METRICS)
def test_without_samples_nothing_is_defined(metric):
    none = np.empty(0, np.int64)
    found = metric_values(metric, np.empty((0, 3)), none, none, none, SHAPE[0])
    assert np.isnan(found.pairs).all() and np.isnan(found.domains).all() and found.influence.shape == (2, 0)
