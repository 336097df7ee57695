"""The lower bound of theorems 1 and 2: the formula, and where it is not defined."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from crosstail.transfer import TransferStatistics, boda_lower_bound

value = st.floats(0, 20)


@given(value, value, value, st.integers(2, 5), st.integers(2, 5), st.integers(1, 50))
def test_the_formula_as_printed(alpha, beta, gamma, num_domains, num_classes, each):
    counts = np.full((num_domains, num_classes), each)
    n = num_domains * num_classes * each
    exponent = num_classes * num_domains / n * alpha
    exponent -= num_classes / n * beta
    exponent -= num_classes * (num_domains - 1) / n * gamma
    expected = n * math.log(num_domains - 1 + num_domains * (num_classes - 1) * math.exp(exponent))
    found = boda_lower_bound(TransferStatistics(alpha, beta, gamma), counts)
    assert found == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_only_the_sum_of_the_counts_matters_and_tensors_are_taken():
    statistics = TransferStatistics(1.0, 2.0, 3.0)
    expected = boda_lower_bound(statistics, np.full((2, 3), 10))
    assert boda_lower_bound(statistics, torch.tensor([[1, 2, 3], [50, 3, 1]])) == expected


def test_grows_with_alpha_and_falls_with_beta_and_gamma():
    counts = np.ones((3, 4))
    base = boda_lower_bound(TransferStatistics(2.0, 2.0, 2.0), counts)
    assert boda_lower_bound(TransferStatistics(2.5, 2.0, 2.0), counts) > base
    assert boda_lower_bound(TransferStatistics(2.0, 2.5, 2.0), counts) < base
    assert boda_lower_bound(TransferStatistics(2.0, 2.0, 2.5), counts) < base


def test_statistics_too_large_for_exp():
    """Where exp would overflow the bound is linear, and where it vanishes N log(D − 1) is left."""
    counts = np.ones((2, 2))
    assert boda_lower_bound(TransferStatistics(1e6, 0.0, 0.0), counts) == pytest.approx(4 * (1e6 + math.log(2)))
    assert boda_lower_bound(TransferStatistics(0.0, 1e6, 1e6), counts) == pytest.approx(0.0, abs=1e-12)


def test_an_absent_pair_is_named():
    with pytest.raises(ValueError, match=r"\(domain 1, class 2\) has none"):
        boda_lower_bound(TransferStatistics(1.0, 1.0, 1.0), np.array([[1, 2, 3], [1, 2, 0]]))


@pytest.mark.parametrize(("shape", "found"), [((1, 3), "1 and 3"), ((3, 1), "3 and 1")])
def test_one_domain_or_one_class_is_refused(shape, found):
    with pytest.raises(ValueError, match=f"two domains and two classes, found {found}"):
        boda_lower_bound(TransferStatistics(1.0, 1.0, 1.0), np.ones(shape))
