"""Metrics of probabilities against scikit-learn and loops; calibration error where the truth is known."""

import numpy as np
import pytest
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    accuracy_score,
    balanced_accuracy_score,
    brier_score_loss,
    f1_score,
    log_loss,
    recall_score,
    roc_auc_score,
)
from tests.metrics.answered import answered

from crosstail.metrics import group_metrics
from crosstail.metrics._reliability import calibration_error, reliability

DOMAINS, CLASSES = ["0", "1"], ["0", "1", "2"]


def metrics_by(by, p, y, domain):
    """The rows of all samples ("overall"), or of each domain, class or pair."""
    found = group_metrics(answered(p.argmax(1), np.log(p), y, domain, len(DOMAINS)))
    wanted = by in ("domain", "pair"), by in ("class", "pair")
    kind = (found["domain"].notna() == wanted[0]) & (found["class"].notna() == wanted[1])
    return found[kind].reset_index(drop=True)


@pytest.fixture(scope="module")
def said():
    """Probabilities (300, 3) with some ties, classes and domains."""
    rng = np.random.default_rng(0)
    y, domain = rng.choice(3, 300, p=[0.6, 0.3, 0.1]), rng.integers(2, size=300)
    p = rng.dirichlet(np.ones(3), 300) + 0.7 * np.eye(3)[y]
    return np.round(p / p.sum(1, keepdims=True), 2) + 1e-3, y, domain


def normalised(p):
    return p / p.sum(1, keepdims=True)


@pytest.mark.parametrize("by", ["overall", "domain"])
def test_groups_of_several_classes_are_scikit_learns(said, by):
    p, y, domain = normalised(said[0]), *said[1:]
    table = metrics_by(by, p, y, domain)
    assert table["domain"].dropna().tolist() == (DOMAINS if by == "domain" else []) and len(table) in (1, 2)
    for i, row in table.iterrows():
        own = domain == i if by == "domain" else slice(None)
        mine, true = p[own], y[own]
        best = mine.argmax(1)
        assert row["samples"] == len(true) and row["accuracy"] == pytest.approx(accuracy_score(true, best))
        assert row["balanced_accuracy"] == pytest.approx(balanced_accuracy_score(true, best))
        assert row["macro_f1"] == pytest.approx(f1_score(true, best, average="macro"))
        assert row["auroc"] == pytest.approx(roc_auc_score(true, mine, multi_class="ovr"))
        assert row["log_loss"] == pytest.approx(log_loss(true, mine))
        assert row["brier"] == pytest.approx(brier_score_loss(true, mine, labels=range(3), scale_by_half=False))
        error = row["calibration_error"], row["calibration_low"], row["calibration_high"]
        assert error == pytest.approx(calibration_error(mine.max(1), best == true))


@pytest.mark.parametrize("by", ["class", "pair"])
def test_of_one_class_they_are_those_of_the_class_among_the_samples_of_the_domain(said, by):
    p, y, domain = normalised(said[0]), *said[1:]
    table = metrics_by(by, p, y, domain)
    assert len(table) == (6 if by == "pair" else 3)
    for _, row in table.iterrows():
        c = CLASSES.index(row["class"])
        among = domain == DOMAINS.index(row["domain"]) if by == "pair" else np.ones(300, bool)
        own = among & (y == c)
        best = p.argmax(1)
        assert row["samples"] == own.sum() and row["accuracy"] == pytest.approx((best[own] == c).mean())
        assert row["macro_f1"] == pytest.approx(f1_score(y[among] == c, best[among] == c))
        assert row["auroc"] == pytest.approx(roc_auc_score(y[among] == c, p[among, c]))
        assert row["balanced_accuracy"] == pytest.approx(recall_score(y[among] == c, best[among] == c))
        assert row["log_loss"] == pytest.approx(log_loss(y[own], p[own], labels=range(3)))
        assert row["brier"] == pytest.approx(brier_score_loss(y[own], p[own], labels=range(3), scale_by_half=False))
        assert row["calibration_error"] == pytest.approx(calibration_error(p[own].max(1), best[own] == c)[0])


def test_a_group_without_samples_has_no_row_and_one_class_alone_has_no_auroc(said):
    p, y, _ = said
    table = metrics_by("pair", p[y == 1], y[y == 1], np.zeros((y == 1).sum(), int))
    assert table[["domain", "class"]].values.tolist() == [["0", "1"]] and np.isnan(table["auroc"][0])


class TestCalibrationError:
    def test_bins_are_scikit_learns_quantiles(self):
        rng = np.random.default_rng(0)
        confidence = rng.beta(4, 2, 3000)
        hit = rng.random(3000) < confidence**2
        right, said = calibration_curve(hit, confidence, n_bins=15, strategy="quantile")
        table = reliability(confidence, hit)
        np.testing.assert_allclose(table[["accuracy", "confidence"]], np.stack([right, said], axis=1), atol=1e-9)
        assert calibration_error(confidence, hit)[0] == pytest.approx(np.abs(right - said).mean())

    def test_bins_have_equal_size_and_equal_confidences_share_one(self):
        confidence = np.repeat([0.6, 0.7, 0.8, 0.9], 50)
        hit = np.arange(200) % 10 < np.repeat([6, 5, 8, 9], 50)
        table = reliability(confidence, hit)
        assert table["samples"].tolist() == [50] * 4 and table["accuracy"].tolist() == pytest.approx(
            [0.6, 0.5, 0.8, 0.9]
        )
        assert calibration_error(confidence, hit)[0] == pytest.approx(0.05)
        order = np.random.default_rng(0).permutation(200)
        assert calibration_error(confidence[order], hit[order])[0] == pytest.approx(0.05)
        even = np.linspace(0.5, 1, 3000)
        assert reliability(even, even > 0.7)["samples"].tolist() == [200] * 15

    @pytest.mark.parametrize("shift", [0.0, 0.07, 0.15])
    def test_the_interval_covers_the_truth(self, shift):
        """Of probabilities that are too high by `shift`, which is the expected error."""
        rng, covered = np.random.default_rng(1), 0
        for seed in range(100):
            true = rng.uniform(0.3, 0.85, 400)
            _, low, high = calibration_error(true + shift, rng.random(400) < true, seed=seed)
            covered += low - 1e-9 <= shift <= high + 1e-9
        assert covered >= 90

    def test_weights_are_numbers_of_samples(self):
        rng = np.random.default_rng(0)
        confidence = rng.random(200)
        hit, weights = rng.random(200) < confidence, rng.integers(1, 4, 200)
        expected = reliability(np.repeat(confidence, weights), np.repeat(hit, weights))
        found = reliability(confidence, hit, weights.astype(float))
        assert len(found) <= len(expected)  # repeated samples say nothing new
        assert found["share"].sum() == pytest.approx(1) and found["samples"].sum() == 200
        overall = (found["share"] * (found["confidence"] - found["accuracy"])).sum()
        assert overall == pytest.approx(np.average(confidence - hit, weights=weights))
