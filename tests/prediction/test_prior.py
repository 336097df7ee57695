"""Prevalence: Bayes' rule, EM against QuaPy's, intervals that cover, and files that are wrong."""

import numpy as np
import pytest

from crosstail.metrics._link import with_prior
from crosstail.prediction.prior import estimate_prior, read_prior


def balanced(share, n, rng, distance=2.0):
    """Exact probabilities (n, C) for equally frequent classes, of samples with these shares; and their classes."""
    y = rng.choice(len(share), n, p=share)
    z = distance * np.eye(len(share))[y] + rng.normal(size=(n, len(share)))
    p = np.exp(distance * z)  # densities of N(distance e_c, I), up to what classes share
    return p / p.sum(1, keepdims=True), y


SHARE = np.array([0.7, 0.2, 0.08, 0.02])


def test_bayes_rule_by_loops():
    p, _ = balanced(SHARE, 20, np.random.default_rng(0))
    found = with_prior(p, SHARE)
    for i in range(20):
        joint = [p[i, c] * SHARE[c] for c in range(4)]
        np.testing.assert_allclose(found[i], np.array(joint) / sum(joint))
    np.testing.assert_allclose(with_prior(p, np.full(4, 0.25)), p)


def test_em_is_quapys():
    from quapy.method.aggregative import EMQ  # here, because importing it takes a second

    p, _ = balanced(SHARE, 2000, np.random.default_rng(0))
    theirs, _ = EMQ.EM(np.full(4, 0.25), p.copy(), epsilon=1e-6)
    np.testing.assert_allclose(estimate_prior(p).share, theirs, atol=1e-3)


def test_intervals_cover_the_share_that_samples_are_drawn_with():
    rng, covered, width = np.random.default_rng(1), np.zeros(4), np.zeros(4)
    for _ in range(200):
        found = estimate_prior(balanced(SHARE, 500, rng)[0])
        covered += (found.low <= SHARE) & (found.high >= SHARE)
        width += (found.high - found.low) / 200
    assert (covered >= 176).all() and (width < 0.2).all()
    assert ((found.low <= found.share) & (found.share <= found.high)).all() and found.share.sum() == pytest.approx(1)


def test_intervals_cover_what_a_calibration_with_errors_estimates():
    """The biases of a calibration are off by what its samples do not tell, and so are the plausible others."""
    rng, covered = np.random.default_rng(6), np.zeros((2, 4))
    for _ in range(50):
        p, _ = balanced(SHARE, 500, rng)
        said = with_prior(p, np.exp(0.5 * rng.normal(size=4)))
        others = [with_prior(said, np.exp(0.5 * rng.normal(size=4))) for _ in range(25)]
        for k, found in enumerate((estimate_prior(said), estimate_prior(said, [q[:300] for q in others]))):
            covered[k] += (found.low <= SHARE) & (found.high >= SHARE)
            assert ((found.low >= 0) & (found.low <= found.share) & (found.share <= found.high)).all()
    assert covered[0].mean() < 0.85 * 50 and covered[1].mean() > 0.93 * 50


def test_more_samples_and_half_precision_give_about_the_same():
    p, y = balanced(SHARE, 20_000, np.random.default_rng(2))
    found = estimate_prior(p.astype(np.float32))
    np.testing.assert_allclose(found.share, estimate_prior(p).share, atol=1e-3)
    np.testing.assert_allclose(found.share, np.bincount(y) / len(y), atol=0.02)


def test_a_class_that_is_absent_has_a_share_of_about_zero():
    p, _ = balanced(np.array([0.5, 0.5, 0, 0]), 3000, np.random.default_rng(0), distance=3.0)
    found = estimate_prior(p)
    assert (found.share[2:] < 0.01).all() and (found.low[2:] < 0.01).all() and (found.high[2:] < 0.03).all()


def test_intervals_of_absent_classes_cover_what_is_there():
    """Exactly 0, and so few that some samples have none."""
    share, rng, covered = np.array([0.79, 0.2, 0.01, 0]), np.random.default_rng(4), np.zeros(4)
    for _ in range(100):
        found = estimate_prior(balanced(share, 200, rng)[0])
        covered += (found.low <= share) & (found.high >= share)
    assert (covered >= 86).all()


def test_one_class_alone():
    found = estimate_prior(np.tile([0.98, 0.02], (300, 1)))
    assert found.share[0] > 0.99 and found.low[0] > 0.9 and found.high[1] < 0.1


def test_without_samples_there_is_nothing_to_estimate():
    with pytest.raises(ValueError, match="no samples"):
        estimate_prior(np.zeros((0, 3)))


class TestFile:
    def read(self, tmp_path, text):
        file = tmp_path / "prior.csv"
        file.write_text(text, encoding="utf-8")
        return read_prior(file, ["cat", "dog"])

    def test_shares_are_found_by_name_in_any_order(self, tmp_path):
        assert self.read(tmp_path, "share,class\n0.25,dog\n0.75,cat\n").tolist() == [0.75, 0.25]

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            ("class,share\ncat,0.5\ndog,0.6\n", "1.1"),
            ("class,share\ncat,1\n", "dog"),
            ("class,share\ncat,0.5\ndog,0.5\nbird,0\n", "bird"),
            ("class,share\ncat,0.5\ncat,0.5\n", "cat"),
            ("class,share\ncat,-0.5\ndog,1.5\n", "cat"),
            ("class,share\ncat,much\ndog,0.5\n", "cat"),
            ("name,share\ncat,0.5\ndog,0.5\n", "class"),
            ("", "prior.csv"),
        ],
    )
    def test_what_is_wrong_is_named(self, tmp_path, text, named):
        with pytest.raises(ValueError, match=named):
            self.read(tmp_path, text)

    def test_no_file(self, tmp_path):
        with pytest.raises(FileNotFoundError, match="nothere"):
            read_prior(tmp_path / "nothere.csv", ["a"])
