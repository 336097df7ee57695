"""Metrics per pair and domain: against scikit-learn, the table of all groups, and drawing samples again."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, log_loss, roc_auc_score
from tests.metrics.answered import answered

from crosstail.metrics import find, group_metrics, names
from crosstail.metrics._values import sampling_variance

METRICS = names()[1:]  # without accuracy
SHAPE = 2, 3


def drawn(rng, each=None):
    """Answers; one pair has no samples, another one only."""
    counts = np.array([[20, 30, 0], [25, 1, 40]]) if each is None else np.full(SHAPE, each)
    domain, y = (np.repeat(index.ravel(), counts.ravel()) for index in np.indices(SHAPE))
    scores = rng.normal(size=(len(y), 3)) * (1 + domain[:, None])
    scores[np.arange(len(y)), y] += 1
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return answered(p.argmax(1), np.log(p), y, domain, SHAPE[0])


@pytest.fixture
def samples():
    return drawn(np.random.default_rng(0))


@pytest.mark.parametrize("metric", METRICS)
def test_pairs_and_domains_are_those_of_the_table_of_all_groups(metric, samples):
    found, table = samples.value(metric), group_metrics(samples)
    of_pairs = table[table["domain"].notna() & table["class"].notna()]
    for row in of_pairs.to_dict("records"):
        assert found.matrix[int(row["domain"]), int(row["class"])] == pytest.approx(row[metric], nan_ok=True)
    assert np.isnan(found.matrix[0, 2])
    of_domains = table[table["domain"].notna() & table["class"].isna()][metric]
    assert found.domains == pytest.approx(of_domains.tolist())


def test_a_pair_is_a_class_against_the_others_of_its_domain(samples):
    y, predicted, p = samples.y, samples.predicted, np.exp(samples.log_p)
    own = samples.domain == 1
    f1, auroc, loss = (samples.value(m).matrix for m in ("macro_f1", "auroc", "log_loss"))
    for c in range(3):
        assert f1[1, c] == pytest.approx(f1_score(y[own] == c, predicted[own] == c))
        assert auroc[1, c] == pytest.approx(roc_auc_score(y[own] == c, p[own, c]))
        mine = own & (y == c)
        assert loss[1, c] == pytest.approx(log_loss(y[mine], p[mine], labels=[0, 1, 2]))


@pytest.mark.parametrize("metric", METRICS)
def test_standard_errors_are_the_spread_over_other_test_samples(metric):
    values, errors, of_pair = [], [], []
    for seed in range(150):
        found = find(metric).sampled(drawn(np.random.default_rng(seed), each=60))
        values.append([found.pair_average, found.average, found.matrix[0, 0]])
        errors.append([found.error("pair_average"), found.error("average")])
        of_pair.append(found.errors[0, 0])
    spread, told = np.std(values, axis=0), [*np.mean(errors, axis=0), np.mean(of_pair)]
    # Bins of one size whose confidence is right bend |x| where it has no derivative: the error is overstated there.
    upper = 2.0 if metric == "calibration_error" else 1.2
    assert all(0.8 * s < t < upper * s for s, t in zip(spread, told, strict=True))


@pytest.mark.parametrize("metric", METRICS)
def test_copies_in_a_group_are_worth_one_sample(metric):
    once = drawn(np.random.default_rng(1), each=40)
    n = len(once)
    single, double = (find(metric).sampled(of) for of in (once, once.keep(np.tile(np.arange(n), 2))))
    error = sampling_variance(double.influence[0], np.tile(np.arange(n), 2))[0] ** 0.5
    ratio = error / single.error("pair_average")
    assert ratio == pytest.approx(1, abs=0.25 if metric == "calibration_error" else 0.05)


@pytest.mark.parametrize("metric", ["accuracy", *METRICS])
def test_the_worst_is_the_lowest_or_the_highest(metric, samples):
    found, known = samples.value(metric), samples.value(metric).matrix
    known = known[~np.isnan(known)]
    up = find(metric).higher_is_better
    assert found.worst_pair == (known.min() if up else known.max()) == found.matrix[found.worst_pair_index]
    assert found.worst_domain == (min if up else max)(found.domains)
    assert found.tail == pytest.approx(np.quantile(known, 0.1 if up else 0.9))
