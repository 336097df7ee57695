import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstail.metrics import mean_interval, wilson


@pytest.mark.parametrize(
    ("hits", "total", "low", "high"),
    [(10, 10, 0.7225, 1.0), (0, 10, 0.0, 0.2775), (81, 263, 0.2553, 0.3662), (0, 0, 0.0, 1.0)],
)
def test_wilson_known_values(hits: int, total: int, low: float, high: float):
    assert wilson(hits, total) == pytest.approx((low, high), abs=5e-5)


@given(st.integers(1, 500), st.data(), st.sampled_from([(0.9, 1.6448536), (0.95, 1.9599640), (0.99, 2.5758293)]))
def test_wilson_ends_solve_the_score_equation(total: int, data: st.DataObject, level: tuple[float, float]):
    hits = data.draw(st.integers(0, total))
    confidence, z = level
    low, high = wilson(hits, total, confidence)
    assert 0 <= low <= hits / total <= high <= 1
    for p in (low, high):
        # Where the estimate is z standard errors away, with the error that the end itself would have.
        assert abs(hits / total - p) == pytest.approx(z * math.sqrt(max(p * (1 - p), 0) / total), abs=1e-6)
    assert low < high


def test_wilson_is_elementwise():
    hits, total = np.array([[0, 3], [10, 0]]), np.array([[10, 7], [10, 0]])
    low, high = wilson(hits, total, 0.9)
    for index in np.ndindex(2, 2):
        assert (low[index], high[index]) == wilson(int(hits[index]), int(total[index]), 0.9)
    assert wilson(np.array([1, 2]), 4)[1].shape == (2,)


def test_wilson_ends_are_exact_at_none_and_all():
    total = np.arange(1, 2000)
    assert (wilson(np.zeros_like(total), total)[0] == 0).all()
    assert (wilson(total, total)[1] == 1).all()


@pytest.mark.parametrize("arguments", [(3, 2), (-1, 2), (1, 2, 1.0), (1, 2, 0.0), (1, 2, 95)])
def test_wilson_refuses_the_impossible(arguments: tuple):
    with pytest.raises(ValueError, match="between 0 and"):
        wilson(*arguments)


@pytest.mark.parametrize("chance", [0.05, 0.5, 0.9])
def test_wilson_covers_the_truth(chance: float):
    low, high = wilson(np.random.default_rng(0).binomial(40, chance, size=4000), 40)
    assert 0.92 <= np.mean((low <= chance) & (chance <= high)) <= 0.98


def test_interval_of_a_mean_is_students():
    values = [1.0, 2.5, 4.0]
    deviation = math.sqrt(sum((v - 2.5) ** 2 for v in values) / 2)
    half = 4.302653 * deviation / math.sqrt(3)  # t with 2 degrees of freedom
    assert mean_interval(values) == pytest.approx((2.5 - half, 2.5 + half), rel=1e-6)
