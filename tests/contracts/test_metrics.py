"""Every metric is defined without samples, does not depend on order and names, and stays inside its range."""

import numpy as np
import pytest
from tests.metrics.answered import answered

from crosstail import metrics
from crosstail.metrics import SampleValues, find, value_on

NAMES = metrics.names()
DOMAINS, CLASSES = 3, 4


def drawn(samples, skill=1.0):
    """Answers for samples of any pair but one; the higher the skill, the more of them are right."""
    rng = np.random.default_rng(samples)
    domain, y = rng.integers(0, DOMAINS, samples), rng.integers(0, CLASSES, samples)
    y[(domain == 0) & (y == 3)] = 0
    scores = rng.normal(size=(samples, CLASSES))
    scores[np.arange(samples), y] += skill
    log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    return answered(log_p.argmax(1), log_p, y, domain, DOMAINS)


def judged(metric, answers):
    """All that is shown of a metric, and what is selected on."""
    found = answers.value(metric)
    whole = found.average, found.pair_average, found.worst_pair, value_on(answers, metric), *found.interval()
    return found.matrix, np.array(found.domains, float), np.array(whole, float)


@pytest.mark.parametrize("metric", NAMES)
def test_it_says_what_it_is(metric):
    found = find(metric)
    assert (found.name, bool(found.label)) == (metric, True) and found.most > 0


@pytest.mark.parametrize("metric", NAMES)
def test_without_samples_nothing_is_defined(metric):
    none = drawn(0)
    found = none.value(metric)
    assert np.isnan(found.matrix).all() and found.domains == [None] * DOMAINS
    assert found.pair_average is found.worst_pair is found.tail is found.interval() is None
    assert value_on(none, metric) is None
    if isinstance(found, SampleValues):
        assert found.influence.shape == (2, 0)


@pytest.mark.parametrize("metric", NAMES)
def test_a_pair_without_samples_has_no_value(metric):
    answers = drawn(80)
    matrix = answers.value(metric).matrix
    assert matrix.shape == (DOMAINS, CLASSES)
    assert (np.isnan(matrix.ravel()) == (np.bincount(answers.pair, minlength=DOMAINS * CLASSES) == 0)).all()


@pytest.mark.parametrize("metric", NAMES)
def test_the_order_of_samples_does_not_matter(metric):
    answers = drawn(80)
    shuffled = answers.keep(np.random.default_rng(1).permutation(len(answers)))
    for one, other in zip(judged(metric, answers), judged(metric, shuffled), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("metric", NAMES)
def test_the_order_and_names_of_domains_do_not_matter(metric):
    answers, place = drawn(80), np.array([2, 0, 1])
    renamed = answers.described(domains=["north", "south", "west"], domain=place[answers.domain])
    matrix, domains, whole = judged(metric, renamed)
    for one, other in zip(judged(metric, answers), (matrix[place], domains[place], whole), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9)


@pytest.mark.parametrize("metric", NAMES)
@pytest.mark.parametrize("samples", [1, 2, 7, 80])
@pytest.mark.parametrize("skill", [-30, -1, 1, 30])
def test_values_and_intervals_are_inside_the_range(metric, samples, skill):
    found, most = drawn(samples, skill).value(metric), find(metric).most
    known = found.matrix[~np.isnan(found.matrix)]
    assert np.all((known >= -1e-12) & (known <= most + 1e-12))
    for view in ("average", "pair_average") if len(known) else ():
        low, high = found.interval(view)
        assert 0 <= low <= getattr(found, view) + 1e-9 and getattr(found, view) - 1e-9 <= high <= most
    if isinstance(found, SampleValues):
        assert found.interval("worst_pair") is found.interval((0, 0)) is None
