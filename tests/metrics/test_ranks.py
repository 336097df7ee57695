"""Ranks over data sets: by loops, by SciPy's Friedman test, and by published critical values."""

import numpy as np
import pytest
from scipy.stats import f, friedmanchisquare

from crosstail.metrics._ranks import compare_ranks


def test_ranks_and_the_friedman_test():
    values = np.random.default_rng(0).normal(size=(7, 5)) + np.arange(5) / 2
    found = compare_ranks(values)
    for row, ranks in zip(values, found.ranks, strict=True):
        assert [1 + sum(other > value for other in row) for value in row] == ranks.tolist()
    chi2 = friedmanchisquare(*values.T).statistic
    assert found.p_value == pytest.approx(f.sf(6 * chi2 / (7 * 4 - chi2), 4, 24))


@pytest.mark.parametrize(("methods", "q"), [(2, 1.960), (5, 2.728), (10, 3.164)])
def test_critical_differences_are_those_of_the_paper(methods, q):
    found = compare_ranks(np.random.default_rng(1).normal(size=(14, methods)))
    assert found.critical == pytest.approx(q * (methods * (methods + 1) / (6 * 14)) ** 0.5, rel=1e-3)


def test_the_same_order_everywhere_cannot_be_chance():
    assert compare_ranks(np.tile([3.0, 2.0, 1.0], (10, 1))).p_value == 0.0
