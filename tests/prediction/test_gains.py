"""What more labels of a pair bring: against loops, and on errors that follow the power law."""

import numpy as np
import pytest

from crosstail.prediction.gains import OFFSET, SPREAD, STEEPEST, exponent, gain, shrunk_errors, thinned


@pytest.mark.parametrize("b", [0.0, 0.15, 0.6, STEEPEST])
def test_the_exponent_of_a_power_law_is_found_and_its_gains_are_true(b):
    counts = np.array([3, 40, 0, 900])

    def error(n):
        return np.array([1.2, 0.8, 1.0, 0.9]) * (n + OFFSET) ** -b / 2

    assert exponent(counts, error(counts), error(counts / 2)) == pytest.approx(b, abs=1e-6)
    for more in (1, 20):
        np.testing.assert_allclose(gain(counts, error(counts), b, more), error(counts) - error(counts + more))


def test_labels_that_never_helped_promise_nothing():
    counts, error = np.array([5, 50]), np.array([0.3, 0.2])
    assert exponent(counts, error, error - 0.05) == 0 and (gain(counts, error, 0.0, 20) == 0).all()
    assert exponent(np.zeros(2, int), error, error) == 0
    assert exponent(counts, error, np.ones(2)) == STEEPEST


def test_errors_of_rare_pairs_are_close_to_the_average():
    rng = np.random.default_rng(0)
    pair, hits = rng.integers(3, size=50), rng.random(50) < 0.7
    found = shrunk_errors(pair, hits, 4)
    for p in range(4):
        own = [hit for q, hit in zip(pair, hits, strict=True) if q == p]
        assert found[p] == pytest.approx(1 - (sum(own) + SPREAD * sum(hits) / 50) / (len(own) + SPREAD))


def test_each_pair_loses_about_half_of_its_samples_once_while_others_keep_theirs():
    pair = np.repeat(np.arange(6), 200)
    (first, kept), (second, left) = thinned(pair, 6, seed=0)
    assert (first ^ second).all() and first.sum() == 3
    for halved, rest in ((first, kept), (second, left)):
        share = np.bincount(pair[rest], minlength=6) / 200
        assert (share[~halved] == 1).all() and (abs(share[halved] - 0.5) < 0.12).all()
