"""Temperatures and biases: against a search, recovered where known, and shrunk where sites have few samples."""

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.special import log_softmax

from crosstail.metrics._calibration import (
    balanced_weights,
    calibrate,
    fit_correction,
    plausible_corrections,
    sample_weights,
)
from crosstail.metrics._link import training_shares
from crosstail.metrics._temperature import LARGEST, Fitted, fit_sharpness, kept_if_it_helps, shrunk

COUNTS = np.array([[5, 2, 1]])


def draw(n, rng, sharpness=1.0, bias=0.0, classes=4):
    """Log probabilities whose calibrated form is softmax(sharpness · log p + bias), and classes drawn from it."""
    log_p = log_softmax(2 * rng.normal(size=(n, classes)), axis=1)
    true = np.exp(log_softmax(sharpness * log_p + bias, axis=1))
    return log_p, np.array([rng.choice(classes, p=p) for p in true])


def loss(log_p, y, weights, s, b=0.0):
    """By loops."""
    total = 0.0
    for row, c, w in zip(s * log_p + b, y, weights, strict=True):
        total -= w * (row[c] - np.logaddexp.reduce(row))
    return total


def test_sharpness_is_the_minimum_of_the_weighted_loss():
    rng = np.random.default_rng(0)
    log_p, y = draw(200, rng, sharpness=0.4)
    weights = rng.random(200)
    best = minimize_scalar(lambda v: loss(log_p, y, weights, np.exp(v)), bounds=(-3, 3), method="bounded")
    assert fit_sharpness(log_p, y, weights).log_sharpness == pytest.approx(best.x, abs=1e-4)


def test_the_standard_error_is_the_spread_over_samples():
    rng = np.random.default_rng(0)
    found = [fit_sharpness(*draw(200, rng, 0.5), np.ones(200)) for _ in range(150)]
    spread = np.std([one.log_sharpness for one in found])
    assert np.sqrt(np.mean([one.squared_error for one in found])) == pytest.approx(spread, rel=0.2)
    assert np.mean([one.log_sharpness for one in found]) == pytest.approx(np.log(0.5), abs=4 * spread / np.sqrt(150))


def test_bias_is_the_minimum_of_the_penalised_loss_and_needs_samples():
    rng = np.random.default_rng(0)
    log_p, y = draw(300, rng, 0.6, np.array([0.8, -0.5, 0.2, -0.5]))
    weights = np.ones(300)

    def objective(free):
        return loss(log_p, y, weights, np.exp(free[0]), free[1:]) + 0.5 * float(free[1:] @ free[1:])

    best = minimize(objective, np.zeros(5))
    found = fit_correction(log_p, y, weights)
    assert objective(np.array([np.log(found.sharpness), *found.bias])) == pytest.approx(best.fun, abs=1e-3)
    kept = y != 2
    assert fit_correction(log_p[kept], y[kept], weights[kept]).bias[2] == 0


@pytest.mark.parametrize("seed", range(4))
def test_a_hundred_times_as_flat_needs_a_hundred_times_the_sharpness(seed):
    rng = np.random.default_rng(seed)
    log_p, y = draw(300, rng, 1.0, np.zeros(4))
    sharp, flat = (fit_correction(log_softmax(scores, axis=1), y, np.ones(300)) for scores in (log_p, log_p / 100))
    assert flat.sharpness == pytest.approx(100 * sharp.sharpness, rel=1e-3)


def at_two_sites(n, rng):
    """Log probabilities of a model with temperature and preferences, where each site has its own prevalence."""
    shares = np.array([[0.7, 0.1, 0.1, 0.1], [0.1, 0.1, 0.2, 0.6]])
    site = rng.integers(0, 2, n)
    y = np.array([rng.choice(4, p=shares[d]) for d in site])
    exact = log_softmax(1.5 * (1.5 * np.eye(4)[y] + rng.normal(size=(n, 4))), axis=1)  # for equal shares
    return log_softmax((exact - PREFERENCE) / 0.6, axis=1), y, site, shares


PREFERENCE = np.array([0.8, -0.5, 0.2, -0.5])


def test_a_correction_through_the_prevalence_is_the_one_for_equal_shares():
    log_p, y, site, shares = at_two_sites(6000, np.random.default_rng(0))
    found = fit_correction(log_p, y, np.ones(6000), shares[site])
    assert found.sharpness == pytest.approx(0.6, rel=0.1)
    np.testing.assert_allclose(np.array(found.bias) - np.mean(found.bias), PREFERENCE, atol=0.15)
    balanced = fit_correction(log_p, y, balanced_weights(y, site, 4))
    np.testing.assert_allclose(balanced.bias, found.bias, atol=0.25)


def test_plausible_corrections_spread_as_corrections_of_other_samples_do():
    rng, found = np.random.default_rng(1), []
    for _ in range(60):
        log_p, y, site, shares = at_two_sites(300, rng)
        one = fit_correction(log_p, y, np.ones(300), shares[site])
        found.append([np.log(one.sharpness), *one.bias])
    drawn = plausible_corrections(one, log_p, np.ones(300), shares[site])
    spread = np.std([[np.log(each.sharpness), *each.bias] for each in drawn], axis=0)
    assert (spread[1:] > 0.6 * np.std(found, axis=0)[1:]).all()  # wider: what the penalty holds back is not known
    assert spread[0] == pytest.approx(np.std(found, axis=0)[0], rel=0.5) and (spread < 1).all()


def test_plausible_corrections_have_the_covariance_of_the_inverse_curvature():
    rng = np.random.default_rng(2)
    log_p, y = draw(150, rng, sharpness=1.5, bias=np.array([2.0, 0.0, -1.0]), classes=3)
    weights = np.ones(len(y))
    best = fit_correction(log_p, y, weights, 1.0)

    def penalised(at):
        return loss(log_p, y, weights, np.exp(at[0]), at[1:]) + (at[1:] ** 2).sum() / 2 + (at[0] / 5) ** 2 / 2

    at, steps = np.array([np.log(best.sharpness), *best.bias]), 1e-3 * np.eye(4)
    curvature = np.empty((4, 4))
    for i, a in enumerate(steps):
        for j, b in enumerate(steps):
            around = penalised(at + a + b) - penalised(at + a - b) - penalised(at - a + b) + penalised(at - a - b)
            curvature[i, j] = around / 4e-6
    drawn = [each for seed in range(100) for each in plausible_corrections(best, log_p, weights, 1.0, seed)]
    found = np.cov([[np.log(each.sharpness), *each.bias] for each in drawn], rowvar=False)
    expected = np.linalg.inv(curvature)
    scale = np.sqrt(np.outer(expected.diagonal(), expected.diagonal()))
    assert abs((expected / scale)[0, 1:]).max() > 0.2  # sharpness and biases go together
    np.testing.assert_allclose(found / scale, expected / scale, atol=0.1)


def test_shares_and_weights_as_in_training():
    counts = np.array([[3, 0, 1], [0, 0, 4]])
    np.testing.assert_allclose(training_shares(counts), [[4 / 6, 0, 2 / 6], [1 / 6, 0, 5 / 6]])
    weights = sample_weights(np.array([0, 0, 2, 2, 2]), np.array([0, 0, 0, 1, 0]), counts)
    np.testing.assert_allclose(weights, np.array([1.5, 1.5, 0.5, 4, 0.5]) * 5 / 8)
    assert (sample_weights(np.array([1]), np.array([0]), counts) == 0).all()


def test_sites_keep_their_own_temperature_as_far_as_samples_tell_them_apart():
    far = [Fitted(0.6, 1e-4), Fitted(-0.6, 1e-4), Fitted(0.9, 4.0), Fitted(0.0, np.inf)]
    found = shrunk(far, common=0.1)
    assert found[0] == pytest.approx(0.6, abs=0.01) and found[1] == pytest.approx(-0.6, abs=0.01)
    assert 0.1 < found[2] < 0.4 and found[3] == 0.1
    same = [Fitted(0.11, 0.01), Fitted(0.09, 0.01), Fitted(0.10, 0.01)]
    assert shrunk(same, 0.1) == [0.1] * 3
    assert shrunk([Fitted(0.4, 0.01)], 0.3) == [0.3]


def test_every_pair_weighs_the_same():
    y, site = np.array([0, 0, 0, 1, 0, 1]), np.array([0, 0, 0, 0, 1, 1])
    weights = balanced_weights(y, site, 2)
    assert weights.sum() == pytest.approx(6)
    assert [weights[(y == c) & (site == d)].sum() for d in (0, 1) for c in (0, 1)] == pytest.approx([1.5] * 4)


def test_calibration_lowers_the_loss_of_new_samples_at_every_site():
    rng, log_p, y, site = np.random.default_rng(0), [], [], []
    for d, s in enumerate((0.4, 1.5)):
        drawn = draw(1500, rng, s)
        log_p, y, site = [*log_p, drawn[0]], [*y, drawn[1]], [*site, np.full(1500, d)]
    log_p, y, site = map(np.concatenate, (log_p, y, site))
    half = np.arange(3000) % 2 == 0
    found = calibrate(log_p[half], log_p[half], y[half], site[half], ["a", "b", "c"], np.ones((3, 4), int))
    assert found.sites["a"] == pytest.approx(0.4, rel=0.15) and found.sites["b"] == pytest.approx(1.5, rel=0.15)
    assert found.sites["a"] < found.sharpness < found.sites["b"] and found.samples == 1500
    for name, d in (("a", 0), ("b", 1)):
        own = ~half & (site == d)
        ones = np.ones(own.sum())
        assert loss(log_p[own], y[own], ones, found.sites[name]) < loss(log_p[own], y[own], ones, 1.0)


def test_no_samples_one_sample_and_perfect_separation_are_survived():
    none = calibrate(np.zeros((0, 3)), np.zeros((0, 3)), np.zeros(0, int), np.zeros(0, int), ["a"], COUNTS)
    assert (none.sharpness, none.sites, none.uniform.bias, none.samples) == (1.0, {"a": 1.0}, [0, 0, 0], 0)
    log_p = np.log(np.array([[0.7, 0.2, 0.1]]))
    one = calibrate(log_p, log_p, np.array([0]), np.array([0]), ["a"], COUNTS)
    numbers = [(each.sharpness, *each.bias) for each in (one.uniform, one.prevalence, *one.plausible)]
    assert np.isfinite(numbers).all() and np.isfinite([one.sharpness, *one.sites.values()]).all()
    assert one.sharpness <= np.exp(LARGEST) * (1 + 1e-9)
    sure = np.log(np.eye(3)[[0, 1, 2]].clip(1e-7))
    perfect = calibrate(sure, sure, np.arange(3), np.zeros(3, int), ["a"], COUNTS)
    assert np.isfinite([perfect.sharpness, *perfect.uniform.bias, *perfect.prevalence.bias]).all()
    untrained = calibrate(log_p, log_p, np.array([0]), np.array([0]), ["a"], 0 * COUNTS)
    assert untrained.prevalence.bias == [0, 0, 0] and np.isfinite(untrained.plausible[0].bias).all()


def test_of_many_samples_a_random_part_is_used(monkeypatch):
    log_p, y, site, shares = at_two_sites(900, np.random.default_rng(0))
    counts = (100 * shares).astype(int)
    every = calibrate(log_p, log_p, y, site, ["a", "b"], counts)
    monkeypatch.setattr("crosstail.metrics._calibration.MOST", 600)
    some = calibrate(log_p, log_p, y, site, ["a", "b"], counts)
    assert (every.samples, some.samples) == (900, 600)
    assert some.prevalence.sharpness == pytest.approx(every.prevalence.sharpness, rel=0.2)
    np.testing.assert_allclose(some.prevalence.bias, every.prevalence.bias, atol=0.4)


def test_very_many_classes_have_one_sharpness_and_no_biases(monkeypatch):
    log_p, y, site, shares = at_two_sites(900, np.random.default_rng(0))
    counts = (100 * shares).astype(int)
    monkeypatch.setattr("crosstail.metrics._calibration.MOST_CLASSES", 2)
    monkeypatch.setattr("crosstail.metrics._calibration.SCORES", 600 * log_p.shape[1])
    found = calibrate(log_p, log_p, y, site, ["a", "b"], counts)
    assert found.samples == 600
    for correction in found.corrections:
        assert correction.bias == [0] * log_p.shape[1]
    # Without biases it is the temperature of the loss at the site's shares, by a search over a grid.
    rows = np.sort(np.random.default_rng(0).choice(900, 600, replace=False))
    own = log_p[rows].astype(float), np.log(training_shares(counts)[site[rows]]), sample_weights(y, site, counts)[rows]
    grid = np.geomspace(0.1, 10, 2000)

    def loss(s):
        scores = s * own[0] + own[1]
        return own[2] @ (np.logaddexp.reduce(scores, axis=1) - scores[np.arange(600), y[rows]])

    assert found.prevalence.sharpness == pytest.approx(grid[np.argmin([loss(s) for s in grid])], rel=0.01)
    sharp = np.log([one.sharpness for one in found.plausible])
    assert 0.01 < sharp.std() < 0.3 and abs(sharp.mean() - np.log(found.prevalence.sharpness)) < sharp.std()


def test_temperatures_that_do_not_help_on_other_samples_are_not_used():
    """A calibrated model with few samples, or one sample that counts for many, is left as it is more often than not."""
    rng = np.random.default_rng(0)
    left, kept = 0, 0
    for _ in range(40):
        p, y = draw(30, rng)
        left += kept_if_it_helps(p, y, np.zeros(30, int), np.ones(30), 1) == [1.0]
        p, y = draw(30, rng, sharpness=0.3)
        kept += kept_if_it_helps(p, y, np.zeros(30, int), np.ones(30), 1) != [1.0]
    assert left > 20 and kept > 35


def test_one_sample_cannot_be_cross_fitted():
    assert kept_if_it_helps(np.log([[0.7, 0.3]]), np.array([0]), np.array([0]), np.ones(1), 1) == [1.0]


def test_a_site_that_is_separated_perfectly_decides_nothing_about_others():
    assert shrunk([Fitted(5.0, 0.0), Fitted(0.2, 1e6)], 0.5) == [0.5, 0.5]
