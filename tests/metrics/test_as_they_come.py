"""Accuracy of samples as they come: against loops over pairs, and what the answers for the prevalence gain."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import log_softmax
from tests.metrics.answered import answered

from crosstail.metrics import Answers, PairAccuracy, find, group_metrics, value_on
from crosstail.metrics._calibration import Calibration, calibrate, calibrated
from crosstail.metrics.as_they_come import by_prevalence

COUNTS = np.array([[90, 9, 0], [30, 30, 60]])


def drawn(seed, sharpness=1.0, bias=(0.0, 0.0, 0.0), each=40):
    """As many samples of every pair, and the scores of a model that knows the classes as if they were equally frequent;
    it may say so with other sharpness, and prefer some classes."""
    rng = np.random.default_rng(seed)
    domain, y = (np.repeat(index.ravel(), each) for index in np.indices(COUNTS.shape))
    x = rng.normal(size=(len(y), 3)) + np.eye(3)[y]
    log_p = log_softmax(sharpness * x + np.array(bias), axis=1)  # of Gaussians a unit apart: x is the log likelihood
    return answered(log_p.argmax(1), log_p, y, domain, 2).described(counts=COUNTS)


def by_hand(answers, predicted):
    """Each pair's recall, of a domain and of all samples by the number of training samples."""
    recall, domains = {}, []
    for d, c in np.ndindex(*answers.counts.shape):
        own = (answers.domain == d) & (answers.y == c)
        if own.any() and answers.counts[d, c]:
            recall[d, c] = (predicted[own] == c).mean()
    for d in range(2):
        weights = {pair: answers.counts[pair] for pair in recall if pair[0] == d}
        domains.append(sum(n * recall[pair] for pair, n in weights.items()) / sum(weights.values()))
    total = sum(answers.counts[pair] for pair in recall)
    return recall, domains, sum(answers.counts[pair] * value for pair, value in recall.items()) / total


def test_pairs_weigh_as_much_as_they_have_training_samples_and_absent_ones_not_at_all():
    answers = drawn(0)
    said = replace(answers, by_prevalence=np.random.default_rng(1).integers(0, 3, len(answers)))
    said = said.keep((said.domain == 0) | (said.y != 1))  # a pair without test samples
    recall, domains, overall = by_hand(said, said.by_prevalence)
    for found in (said.value("as_they_come"), find("as_they_come").sampled(said)):
        assert {pair: found.matrix[pair] for pair in recall} == pytest.approx(recall)
        assert np.isnan(found.matrix).sum() == COUNTS.size - len(recall)
        assert found.domains == pytest.approx(domains) and found.pair_average == pytest.approx(overall)
        assert found.average == pytest.approx(np.mean(domains)) and found.worst_pair == min(recall.values())
        low, high = found.interval()
        assert low < overall < high
    assert value_on(said, "as_they_come") == pytest.approx(overall)


def test_with_equal_weights_it_is_the_accuracy_of_pairs_alike():
    accuracy = PairAccuracy.of(drawn(0))
    same = accuracy.weighted(np.full(COUNTS.shape, 7.0))
    for view in ("pair_average", "average"):
        assert getattr(same, view) == pytest.approx(getattr(accuracy.by_class(), view))
        assert same.interval(view) == pytest.approx(accuracy.by_class().interval(view))
    assert same.interval(1) == pytest.approx(accuracy.by_class().interval(1))


def test_of_unseen_domains_nothing_is_known():
    none = drawn(0).described(counts=np.zeros_like(COUNTS)).value("as_they_come")
    assert none.pair_average is none.interval() is None and none.domains == [None, None]


def bayes(x_log_p, domain):
    """The best answers for samples as they come, from the scores of a model without preferences."""
    more = COUNTS + 1
    return (x_log_p + np.log(more / more.sum(1, keepdims=True))[domain]).argmax(1)


@pytest.mark.parametrize(("sharpness", "bias"), [(1.0, (0, 0, 0)), (0.5, (0, 0, 0)), (2.0, (1.5, 0, -1.0))])
def test_a_correction_from_validation_samples_undoes_what_a_model_prefers(sharpness, bias):
    """A model that was trained on frequent classes has taken their prevalence into account already."""
    validation, test = drawn(1, sharpness, bias, each=400), drawn(2, sharpness, bias, each=400)
    given = calibrate(validation.log_p, validation.log_p, validation.y, validation.domain, ["0", "1"], COUNTS)
    said = calibrated(test, given)
    best = by_hand(test, bayes(drawn(2, each=400).log_p, test.domain))[2]
    assert value_on(said, "as_they_come") == pytest.approx(best, abs=0.01)
    prepared = find("as_they_come").prepared(test, validation)
    assert value_on(prepared, "as_they_come") == pytest.approx(best, abs=0.01)
    default = by_hand(test, test.predicted)[2]
    assert default < best - 0.02 and by_hand(test, by_prevalence(said).predicted)[0][0, 1] < 0.5


def test_a_model_that_is_told_the_domain_answers_so():
    answers = drawn(0)
    told = replace(answers, by_prevalence=answers.y)
    assert value_on(replace(answers, informed=told), "as_they_come") == 1.0


def test_in_the_table_of_all_groups_all_samples_and_classes_are_means_over_pairs():
    said = replace(drawn(0), by_prevalence=np.random.default_rng(1).integers(0, 3, 6 * 40))
    recall, _, overall = by_hand(said, said.by_prevalence)
    table = group_metrics(said)
    rows = table[table["domain"].isna()].fillna({"class": "all"}).set_index("class")["as_they_come"]
    assert rows["all"] == pytest.approx(overall)
    for c in range(3):
        n = COUNTS[:, c]
        assert rows[str(c)] == pytest.approx(sum(n[d] * recall.get((d, c), 0) for d in range(2)) / n.sum())


def test_the_answers_go_along_with_their_samples():
    said = calibrated(drawn(0), Calibration.none(["0", "1"], 3))
    some = said.keep(np.arange(5))
    assert some.by_prevalence.tolist() == said.by_prevalence[:5].tolist()
    both = Answers.pooled([some, some])
    assert both.by_prevalence.tolist() == 2 * some.by_prevalence.tolist()
