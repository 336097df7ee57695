"""Limits of distances, false alarms among held-out samples, and drift: against loops and by simulation."""

import math

import numpy as np
import pytest

from crosstail.metrics import Answers
from crosstail.prediction.familiar import RATE, Drift, flagged, limits, said_of, superiority
from crosstail.prediction.prior import EstimatedPrior


def held_out(distance, domain, group=None, known=None):
    """Answers of two classes for samples of two sites with these distances."""
    n = len(distance)
    about = {"domains": ["a", "b"], "classes": ["x", "y"], "counts": np.full((2, 2), 50), "y": np.arange(n) % 2}
    about |= {"domain": domain, "group": group, "predicted": np.zeros(n, np.int64), "row": np.arange(n)}
    informed = None if known is None else Answers(**about, distance=known.astype(np.float32))
    return Answers(**about, distance=distance.astype(np.float32), informed=informed)


def test_a_limit_is_an_order_statistic_of_the_site_or_of_all_where_it_has_too_few():
    rng = np.random.default_rng(0)
    domain = np.repeat([0, 1], [60, 12])  # 12 < 19 samples
    unknown, known = rng.random((2, 72)).astype(np.float32)
    found = limits(held_out(unknown, domain, known=known))
    for d, own in enumerate([known[domain == 0], known, unknown]):
        rank = math.ceil((len(own) + 1) * (1 - RATE) - 1e-9)
        assert found[d] == sorted(own)[rank - 1]
    assert np.isinf(limits(held_out(unknown[:10], domain[:10]))).all()  # with 10 samples, nothing can be said


def test_false_alarms_are_as_promised_and_cross_fitted():
    rates, crossed = [], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        distance, domain = rng.normal(size=400) + 1, rng.integers(2, size=400)
        distance += 2 * domain  # sites differ
        old = held_out(distance, domain)
        fresh = rng.integers(2, size=2000)
        rates.append(np.mean(rng.normal(size=2000) + 1 + 2 * fresh > limits(old)[fresh]))
        crossed.append(flagged(old).mean())
    for found in (rates, crossed):
        assert RATE - 0.012 < np.mean(found) < RATE + 0.004
    doubled = held_out(np.repeat(np.arange(15.0), 2), np.zeros(30, np.int64), group=np.repeat(np.arange(15), 2))
    for told in (True, False):
        assert flagged(doubled, told=told).tolist() == [False] * 28 + [True] * 2  # a copy does not raise the limit


def test_superiority_is_the_weighted_share_of_pairs_and_its_interval_holds():
    rng = np.random.default_rng(1)
    new, old, weights = rng.integers(5, size=7), rng.integers(5, size=9), rng.random(9)
    wins = sum(w * ((n > o) + 0.5 * (n == o)) for n in new for o, w in zip(old, weights, strict=True))
    assert superiority(new, old, weights, None)[0] == pytest.approx(wins / len(new) / weights.sum())
    inside, truth = [], 0.5 + 0.5 * math.erf(0.5 / 2)  # P(N(0.5, 1) > N(0, 1))
    for seed in range(300):
        rng = np.random.default_rng(seed)
        copies = np.repeat(rng.normal(size=40), 2)
        _, low, high = superiority(rng.normal(0.5, 1, 60), copies, np.ones(80), np.repeat(np.arange(40), 2))
        inside.append(low < truth < high)
    assert 0.91 < np.mean(inside) < 0.98


@pytest.mark.parametrize(
    ("farther", "less_sure", "share", "prior", "todo"),
    [
        (0.7, 0.7, 0.5, None, "They look different"),
        (0.5, 0.7, 0.5, None, "They are harder"),
        (0.5, 0.5, 0.9, None, "Only the prevalence differs"),
        (0.5, 0.5, 0.9, "estimate", "As in training"),
        (0.5, 0.5, 0.5, None, "As in training"),
    ],
)
def test_each_site_has_a_line_that_says_what_to_do(farther, less_sure, share, prior, todo):
    shares = np.array([share, 1 - share])
    estimated = EstimatedPrior(shares, shares - 0.05, shares + 0.05)
    intervals = [(middle, middle - 0.05, middle + 0.05) for middle in (farther, less_sure)]
    line = said_of(Drift(100, 7, 0.05, *intervals, estimated, np.array([0.5, 0.5])), "lagos", ["x", "y"], prior)
    assert line.startswith("lagos: 7 of 100 unlike training (usually 5 %); ") and todo in line
    assert f"{100 * share:.0f} % ({100 * share - 5:.0f} to {100 * share + 5:.0f}), in training 50 %" in line
    assert "\n" not in line
