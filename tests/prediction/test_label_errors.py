"""Probable label errors: the chance that is stated of them, and those that were planted in real digits."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_predict

from crosstail.metrics import wilson
from crosstail.prediction.label_errors import WORTH, _likely, worth_a_look


def digits_with(flips, noise=0.0):
    """Digits judged by models that did not see them, their labels with some flipped, and which are."""
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    flipped = rng.choice(len(y), round(flips * len(y)), replace=False)
    given = y.copy()
    given[flipped] = (y[flipped] + rng.integers(1, 10, len(flipped))) % 10
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
    p = cross_val_predict(model, x / 16 + noise * rng.normal(size=x.shape), given, method="predict_proba")
    return p, given, np.full((len(y), 10), 0.1), np.isin(np.arange(len(y)), flipped), y


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_planted_errors_are_found_at_the_chance_that_is_stated(noise):
    p, given, shares, flipped, y = digits_with(0.05, noise)
    found = worth_a_look(p, given, shares)
    hits = flipped[found["row"]]
    assert hits.sum() > 0.6 * flipped.sum() and (np.diff(found["chance"]) <= 0).all()
    assert found["chance"].min() >= WORTH and found["chance"].mean() <= wilson(hits.sum(), len(hits))[1]
    right = found[hits]
    assert (y[right["row"]] == right["seems"]).mean() > 0.8


@pytest.mark.parametrize("noise", [0.0, 0.5, 1.5])  # at the greatest, the model contradicts most labels
def test_mistakes_of_a_model_are_not_listed(noise):
    p, given, shares, _, _ = digits_with(0, noise)
    assert len(worth_a_look(p, given, shares)) <= 3


def test_no_errors_and_no_samples_give_an_empty_table():
    assert worth_a_look(np.eye(3), np.arange(3), np.full((3, 3), 1 / 3)).empty
    assert worth_a_look(np.zeros((0, 3)), np.zeros(0, np.int64), np.zeros((0, 3))).empty


def judged(flip, seed=0, shift=3.0, n=3000):
    """Probabilities of a model for three classes that overlap, labels with a share flipped, and which are."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=[0.6, 0.3, 0.1])
    x = rng.normal(size=n) + shift * y
    density = np.exp(-0.5 * (x[:, None] - shift * np.arange(3)) ** 2) * [0.6, 0.3, 0.1]
    p, shares = density / density.sum(1, keepdims=True), np.tile([0.6, 0.3, 0.1], (n, 1))
    given, flipped = y.copy(), rng.random(n) < flip
    for row in np.flatnonzero(flipped):
        others = shares[row] * (np.arange(3) != y[row])
        given[row] = rng.choice(3, p=others / others.sum())
    return p, given, shares, flipped


def test_the_chance_of_a_calibrated_model_is_not_too_high_nor_far_too_low():
    for seed in range(3):
        p, y, shares, flipped = judged(0.05, seed)
        found = worth_a_look(p, y, shares)
        assert len(found) > 30
        assert 0.4 * flipped[found["row"]].mean() < found["chance"].mean() < flipped[found["row"]].mean()


def test_a_wrong_label_is_drawn_from_the_other_classes_by_their_shares():
    p, y, shares, _ = judged(0.2, n=20)
    right, wrong = _likely(p, y, shares, 0.5)
    for i in range(20):
        true = p[i] ** np.exp(0.5) / (p[i] ** np.exp(0.5)).sum()
        drawn = sum(true[t] * shares[i, y[i]] / (1 - shares[i, t]) for t in range(3) if t != y[i])
        np.testing.assert_allclose([right[i], wrong[i]], [true[y[i]], drawn])
