"""Holm's correction, prediction intervals and paired tests against scipy and published values."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from crosstail.metrics import wilson
from crosstail.metrics._comparisons import difference_interval, holm, pair_differences, prediction_interval

ONE_PAIR = {"num_domains": 1, "num_classes": 1}


@given(st.lists(st.floats(0, 1), min_size=1, max_size=8))
def test_holm_rejects_what_the_stepwise_procedure_rejects(p):
    order, rejected = sorted(range(len(p)), key=p.__getitem__), set()
    for step, i in enumerate(order):
        if p[i] * (len(p) - step) >= 0.05:
            break
        rejected.add(i)
    assert {i for i, q in enumerate(holm(p)) if q < 0.05} == rejected


def test_a_prediction_interval_covers_nine_new_values_of_ten():
    drawn = np.random.default_rng(0).normal(0.5, 0.05, (4000, 5))
    ends = [prediction_interval(row[:4]) for row in drawn]
    covered = np.mean([low <= row[4] <= high for (low, high), row in zip(ends, drawn, strict=True)])
    assert covered == pytest.approx(0.9, abs=0.02)


def test_a_prediction_interval_stays_in_range_and_needs_three_values():
    assert prediction_interval([0.97, 0.99, 1.0])[1] == 1.0
    assert prediction_interval([0.9, 0.8]) is None


def test_the_interval_of_two_proportions_is_the_one_that_newcombe_published():
    # Newcombe (1998), Statistics in Medicine 17: 873-890, method 10: 9/10 against 3/10.
    low, high = difference_interval(np.array([9.0]), np.array([3.0]), np.array([10.0]))
    assert (low[0], high[0]) == (pytest.approx(0.1705, abs=1e-4), pytest.approx(0.8090, abs=1e-4))


@pytest.mark.parametrize("table", [(36, 12, 2, 0), (20, 5, 1, 24), (0, 3, 1, 2), (5, 0, 0, 0)])
def test_the_interval_of_a_pair_is_that_of_the_two_by_two_table(table):
    both, only_a, only_b, neither = table
    n = sum(table)
    a, b = (both + only_a) / n, (both + only_b) / n
    (low_a, high_a), (low_b, high_b) = wilson(both + only_a, n), wilson(both + only_b, n)
    margins = (both + only_a) * (only_b + neither) * (both + only_b) * (only_a + neither)
    covariance = both * neither - only_a * only_b
    if covariance > 0:
        covariance = max(covariance - n / 2, 0)
    phi = covariance / math.sqrt(margins) if margins else 0
    below = (a - low_a) ** 2 - 2 * phi * (a - low_a) * (high_b - b) + (high_b - b) ** 2
    above = (high_a - a) ** 2 - 2 * phi * (high_a - a) * (b - low_b) + (b - low_b) ** 2
    zero = np.zeros(n, np.int64)
    answers = np.repeat([[True, True, False, False], [True, False, True, False]], table, axis=1)
    found = pair_differences(*answers, zero, zero, **ONE_PAIR)
    ends = a - b - math.sqrt(below), a - b + math.sqrt(above)
    assert (found.low[0, 0], found.high[0, 0]) == pytest.approx(ends)


def test_the_p_value_is_mcnemars_and_corrected_for_the_number_of_pairs():
    generator = np.random.default_rng(0)
    y, domain = generator.integers(0, 2, 200), generator.integers(0, 2, 200)
    a, b = generator.random(200) < 0.8, generator.random(200) < 0.5
    found = pair_differences(a, b, y, domain, num_domains=2, num_classes=3)
    for d, c in np.ndindex(2, 2):
        own = (y == c) & (domain == d)
        only_a, only_b = int((a & ~b & own).sum()), int((b & ~a & own).sum())
        assert found.p_value[d, c] == pytest.approx(stats.binomtest(only_a, only_a + only_b).pvalue)
        assert found.low[d, c] < found.estimate[d, c] < found.high[d, c]
    assert np.isnan(found.adjusted[:, 2]).all() and (found.adjusted >= found.p_value)[:, :2].all()
    assert found.adjusted[:, :2].ravel().tolist() == holm(found.p_value[:, :2].ravel()).tolist()


def test_samples_of_one_group_count_once():
    a, b = np.ones(12, bool), np.zeros(12, bool)
    zero, group = np.zeros(12, np.int64), np.repeat([0, 1, 2], 4)
    alone, grouped = (pair_differences(a, b, zero, zero, **ONE_PAIR, group=g) for g in (None, group))
    assert alone.p_value[0, 0] == pytest.approx(2 / 2**12) and grouped.p_value[0, 0] == pytest.approx(2 / 2**3)
    assert grouped.low[0, 0] < alone.low[0, 0]
