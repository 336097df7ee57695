"""Prediction sets: thresholds against loops and crepes, coverage per group, and what small groups fall back to."""

import math

import numpy as np
import pytest
from crepes import ConformalClassifier
from crepes.extras import hinge

from crosstail.prediction.sets import FALLBACK, PredictionSets


def draw(n, rng, sites=2, classes=3):
    """Probabilities that are too sharp, classes and sites; class 2 is rare at site 1."""
    site = rng.integers(sites, size=n)
    y = np.where(site == 1, rng.choice(classes, n, p=[0.6, 0.37, 0.03]), rng.integers(classes, size=n))
    logits = 1.2 * np.eye(classes)[y] + rng.normal(size=(n, classes)) * np.where(site == 1, 1.5, 0.7)[:, None]
    p = np.exp(2 * logits)
    return p / p.sum(1, keepdims=True), y, site


def calibrated(p, y, site, **options):
    return PredictionSets.calibrated(p[np.arange(len(y)), y], y, site, num_classes=p.shape[1], **options)


@pytest.mark.parametrize("per", FALLBACK)
def test_thresholds_are_order_statistics_of_the_first_group_with_enough_samples(per):
    p, y, site = draw(300, np.random.default_rng(0))
    found = calibrated(p, y, site, num_sites=3, coverage=0.9, per=per)
    assert found.least.shape == (4, 3)  # site 2 has no samples, the last row is for unknown sites
    for d, c in np.ndindex(4, 3):
        groups = {"all": y >= 0, "site": site == d, "class": y == c, "pair": (site == d) & (y == c)}
        for level, name in enumerate(FALLBACK[per]):
            own = sorted((p[i, y[i]] for i in np.flatnonzero(groups[name])), reverse=True)
            rank = math.ceil((len(own) + 1) * 0.9 - 1e-9)
            if rank <= len(own):
                assert (found.source[d, c], found.least[d, c]) == (level, own[rank - 1])
                break
        else:
            pytest.fail("all samples together are enough")
    if per == "pair":
        assert found.source[1, 2] == 1 and found.source[0, 0] == 0 and (found.source[2:] == 1).all()


@pytest.mark.parametrize("per", ["all", "class"])
def test_sets_are_those_of_crepes(per):
    rng = np.random.default_rng(3)
    (p, y, site), (new, _, _) = draw(400, rng), draw(200, rng)
    ours = calibrated(p, y, site, num_sites=2, coverage=0.85, per=per).members(new)
    theirs = ConformalClassifier()
    bins = {} if per == "all" else {"bins": y}
    theirs.fit(hinge(p, np.arange(3), y), **bins)
    if per == "all":
        expected = theirs.predict_set(hinge(new), confidence=0.85, smoothing=False)
    else:
        columns = [
            theirs.predict_set(hinge(new), np.full(200, c), confidence=0.85, smoothing=False)[:, c] for c in range(3)
        ]
        expected = np.column_stack(columns)
    expected = expected.astype(bool)
    expected[np.arange(200), new.argmax(1)] = True
    np.testing.assert_array_equal(ours, expected)


@pytest.mark.parametrize("per", ["all", "site", "class", "pair"])
def test_the_promised_share_of_each_group_is_covered(per):
    """Mean over 200 random calibration and test sets, at least nominal minus two standard errors."""
    rng, shares = np.random.default_rng(5), []
    for _ in range(200):
        (p, y, site), (new, true, where) = draw(600, rng), draw(600, rng)
        sets = calibrated(p, y, site, num_sites=2, coverage=0.9, per=per)
        inside = sets.members(new, where)[np.arange(600), true]
        groups = {"all": true * 0, "site": where, "class": true, "pair": where * 3 + true}[per]
        promised = sets.source[where, true] == 0  # not those that fell back
        shares.append(
            [inside[promised & (groups == g)].mean() if (promised & (groups == g)).any() else np.nan for g in range(6)]
        )
    mean, number = np.nanmean(np.array(shares)[:, ~np.isnan(shares).all(0)], axis=0), 200
    error = np.nanstd(np.array(shares)[:, ~np.isnan(shares).all(0)], axis=0) / np.sqrt(number)
    assert (mean >= 0.9 - 2 * error).all() and (mean <= 0.98).all()


def test_too_few_samples_promise_nothing_and_a_set_is_never_empty():
    p, y, site = draw(5, np.random.default_rng(0))
    sets = calibrated(p, y, site, num_sites=2, coverage=0.9)
    assert (sets.least == 0).all() and (sets.source == 4).all() and sets.members(p, site).all()
    low = calibrated(*draw(300, np.random.default_rng(0)), num_sites=2, coverage=0.05, per="all")
    assert low.members(np.array([[0.4, 0.35, 0.25]])).tolist() == [[True, False, False]]


@pytest.mark.parametrize("coverage", [0, 1, -0.1, 1.5, float("nan")])
def test_a_coverage_that_makes_no_sense_is_named(coverage):
    with pytest.raises(ValueError, match="--coverage"):
        calibrated(*draw(30, np.random.default_rng(0)), num_sites=2, coverage=coverage)
