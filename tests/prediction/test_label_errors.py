"""Probable label errors: cleanlab's, and those that were planted in real digits."""

import numpy as np
from sklearn.datasets import load_digits
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_predict

from crosstail.prediction.label_errors import label_errors


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
