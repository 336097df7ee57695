"""Probable label errors: cleanlab's, and those that were planted in real digits."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_predict

from crosstail.prediction.label_errors import WORTH, label_errors, worth_a_look


def test_they_are_cleanlabs():
    from cleanlab.filter import find_label_issues  # here, because importing it takes a second

    rng = np.random.default_rng(0)
    y = rng.choice(4, 500, p=[0.5, 0.3, 0.15, 0.05])
    p = rng.dirichlet(np.ones(4), 500) + 0.8 * np.eye(4)[y]
    p /= p.sum(1, keepdims=True)
    wrong = rng.choice(500, 40, replace=False)
    y[wrong] = (y[wrong] + 1) % 4
    theirs = find_label_issues(y, p, filter_by="confident_learning", n_jobs=1)
    assert sorted(label_errors(p, y)["row"]) == np.flatnonzero(theirs).tolist()


def test_planted_errors_come_first():
    """Handwritten digits with 5 % of the labels flipped."""
    x, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    flipped = rng.choice(len(y), len(y) // 20, replace=False)
    given = y.copy()
    given[flipped] = (y[flipped] + rng.integers(1, 10, len(flipped))) % 10
    model = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.1)
    p = cross_val_predict(model, x / 16, given, method="predict_proba")
    found = label_errors(p, given)
    assert (np.diff(found["probability"]) >= 0).all()
    first = found["row"][: len(flipped)]
    assert np.isin(first, flipped).mean() > 0.75  # at random: 0.05
    right = found[found["row"].isin(flipped)]
    assert (y[right["row"]] == right["seems"]).mean() > 0.9


def test_no_errors_give_an_empty_table():
    assert len(label_errors(np.eye(3), np.arange(3))) == 0


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


def test_the_expected_precision_is_that_of_planted_errors():
    for seed in range(3):
        p, y, shares, flipped = judged(0.05, seed)
        found = worth_a_look(p, y, shares)
        assert len(found) > 50 and found["precision"].iloc[-1] >= WORTH
        assert abs(flipped[found["row"]].mean() - found["precision"].iloc[-1]) < 0.15


def test_mistakes_of_a_model_are_not_listed():
    """Without errors, the model is wrong about samples between two classes, of which there are hundreds."""
    for seed in range(3):
        p, y, shares, _ = judged(0.0, seed, shift=2.0)
        assert len(label_errors(p, y)) > 200 and len(worth_a_look(p, y, shares)) <= 3


def test_the_number_of_errors_is_bounded_as_by_flipping_every_label_in_turn():
    p, y, shares, _ = judged(0.2, n=150)
    kept, all_listed = worth_a_look(p, y, shares), label_errors(p, y)
    flips = []  # own probability and weight of every sample under every other label, if it is listed
    mean = [p[y == c, c].mean() for c in range(3)]
    for i in range(150):
        confident = [c for c in range(3) if p[i, c] >= mean[c]]
        seems = max(confident, key=p[i].__getitem__, default=None)
        others = set(range(3)) - {y[i], seems} if confident else ()
        flips += [(p[i, c], shares[i, c] / (1 - shares[i, y[i]]) / 150) for c in others]

    def share(t):
        return sum(weight for q, weight in flips if q <= t)

    bounds = [(all_listed["probability"] <= t).sum() / share(t) for t, _ in flips if share(t) >= 0.1 * share(1)]
    expected = [min(bounds) * share(t) / (k + 1) for k, t in enumerate(all_listed["probability"])]
    np.testing.assert_allclose(kept["precision"], np.minimum(expected, 1)[: len(kept)])
    assert len(kept) == max((k + 1 for k, one in enumerate(expected) if one >= WORTH), default=0) > 0
