"""Thresholds for critical classes: against loops, and whether new samples are found as often as promised."""

import numpy as np
import pytest

from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.prediction.critical import ALL, NONE, SITE, Alarms, needed, read_critical, threshold
from crosstail.prediction.cross_fit import covered, flagged


def by_loops(p, group, recall):
    """The largest of the probabilities at which the equation holds."""
    groups, best = sorted(set(group)), None
    for candidate in sorted(p):
        risk = 0.0
        for g in groups:
            own = [value for value, of in zip(p, group, strict=True) if of == g]
            risk += sum(value < candidate for value in own) / len(own)
        if (risk + 1) / (len(groups) + 1) <= 1 - recall + 1e-12:
            best = candidate
    return best


@pytest.mark.parametrize("recall", [0.5, 0.8, 0.9, 0.95])
@pytest.mark.parametrize("seed", range(6))
def test_a_threshold_is_the_one_of_the_equation(seed, recall):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 60))
    p, group = rng.random(n).round(1 + seed % 2), rng.integers(0, max(1, n // 2), n)  # with ties
    least, _, number = threshold(p, group, recall)
    expected = by_loops(p.tolist(), group.tolist(), recall)
    assert number == len(set(group.tolist()))
    assert (expected is None and np.isnan(least)) or least == expected
    assert (expected is None) == (number < needed(recall))


@pytest.mark.parametrize(("n", "size"), [(19, 1), (40, 1), (40, 4), (150, 1)])
def test_new_samples_are_found_as_often_as_promised(n, size):
    """Over 4,000 choices of calibration samples: the mean recall, and how often it is below the bound."""
    rng, recalls, bounds = np.random.default_rng(n + size), [], []
    for _ in range(4000):
        hard = rng.random(n)[:, None]  # samples of one group are alike
        p = (0.7 * hard + 0.3 * rng.random((n, size)) if size > 1 else hard).ravel()
        least, sure, _ = threshold(p, np.repeat(np.arange(n), size), 0.95)
        # The share of new samples below it: uniform, or a sum of uniform ones with lengths 0.7 and 0.3.
        recalls.append(1 - least if size == 1 else 1 - trapezoid(least))
        bounds.append(recalls[-1] < sure)
    error = np.std(recalls) / np.sqrt(len(recalls))
    assert np.mean(recalls) > 0.95 - 3 * error
    assert np.mean(recalls) < 0.95 + 1 / (n + 1) + 3 * error  # and not by flagging everything
    assert np.mean(bounds) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 4000)


def trapezoid(t):
    """P(0.7 u + 0.3 v < t) for independent uniform u and v, by the areas of triangles."""
    corner = lambda at: max(0.0, t - at) ** 2 / 2 / 0.21  # noqa: E731
    return corner(0) - corner(0.3) - corner(0.7) + corner(1.0)


def test_a_site_with_too_few_samples_finds_all_of_them_and_keeps_the_promise_of_all_sites():
    rng = np.random.default_rng(0)
    y, site = np.repeat([0, 1], [60, 10]), np.r_[np.repeat([0, 1], [50, 10]), np.zeros(10, int)]
    p = rng.random(70)
    p[50:60] *= 0.5
    found = Alarms.calibrated(p, y, site, None, {0: 0.95, 1: 0.95}, 3)
    every, own = threshold(p[:60], np.arange(60), 0.95)[0], threshold(p[:50], np.arange(50), 0.95)[0]
    assert found.least[:, 0].tolist() == [own, min(every, p[50:60].min()), every, every]
    assert found.source[:, 0].tolist() == [SITE, ALL, ALL, ALL] and found.missing[:3, 0].tolist() == [0, 9, 19]
    assert found.sure[1, 0] == pytest.approx(0.05**0.1) and np.isnan(found.sure[2, 0])
    assert found.source[:, 1].tolist() == [NONE] * 4 and found.missing[0, 1] == 9
    assert found.raised(np.zeros((2, 2)), np.array([1, -1])).tolist() == [[False, True]] * 2  # all, where too few


def drawn(size, seed, groups=None):
    rng = np.random.default_rng(seed)
    y, domain = rng.choice(3, size, p=[0.6, 0.3, 0.1]), rng.integers(0, 2, size)
    scores = 1.5 * np.eye(3)[y] + rng.normal(size=(size, 3))
    log_p = scores - np.log(np.exp(scores).sum(1, keepdims=True))
    names = {"domains": ["north", "south"], "classes": ["a", "b", "c"], "counts": np.full((2, 3), 20)}
    group = None if groups is None else rng.integers(0, groups, size)
    return Answers(**names, y=y, domain=domain, predicted=log_p.argmax(1), log_p=log_p, group=group)


@pytest.mark.parametrize("groups", [None, 80])
def test_no_sample_is_flagged_by_a_threshold_that_it_or_its_group_has_chosen(groups):
    test = drawn(600, 0, groups)
    given = Calibration.none(test.domains, 3)
    _, before = flagged(test, given, {2: 0.9})
    own = np.arange(600) if groups is None else test.group
    i = int(np.flatnonzero(test.y == 2)[3])
    moved = test.log_p.copy()
    moved[own == own[i]] = np.log([0.01, 0.01, 0.98])  # no longer among those that a low threshold is needed for
    _, after = flagged(Answers(**{**vars(test), "log_p": moved}), given, {2: 0.9})
    assert after[own == own[i]].all()
    lowered = test.log_p.copy()
    lowered[i] = np.log([0.98, 0.0199, 0.0001])
    _, missed = flagged(Answers(**{**vars(test), "log_p": lowered}), given, {2: 0.9})
    assert not missed[i, 0]  # its own low probability lowers no threshold of its own
    assert before.mean() < 0.9


def test_held_out_recall_is_near_what_was_asked_for_and_flags_need_a_look():
    recalls, shares = [], []
    for seed in range(30):
        test = drawn(800, seed)
        given = Calibration.none(test.domains, 3)
        _, found = flagged(test, given, {2: 0.9})
        recalls.append(found[test.y == 2, 0].mean())
        shares.append(found.mean())
        if seed == 0:
            plain, table = covered(test, given), covered(test, given, recalls={2: 0.9})
            assert (table["review"] == ((table["size"] != 1) | found[:, 0])).all()
            assert (table["size"] >= plain["size"]).all() and table["inside"].sum() >= plain["inside"].sum()
    assert abs(np.mean(recalls) - 0.9) < 3 * np.std(recalls) / np.sqrt(30) + 1 / 40
    assert np.mean(shares) < 0.7


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("d=0.9", "--critical d=0.9: there are a, b"),
        ("a=1", "the recall is '1'"),
        ("a=", "the recall is ''"),
        ("a=nan", "the recall is 'nan'"),
        ("a=most", "the recall is 'most', expected a share such as 0.95"),
        ("=0.9", "--critical =0.9: there are a, b"),
    ],
)
def test_a_wrong_recall_is_named(word, said):
    with pytest.raises(ValueError, match=said):
        read_critical([word], ["a", "b"])
