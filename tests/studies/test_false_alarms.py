"""The tests between methods hold their level on the answers of real models that the study has kept."""

import numpy as np
import pytest
from studies.false_alarms.__main__ import MANY, NAMES
from studies.false_alarms.runs import REFERENCE, Records
from studies.false_alarms.simulation import Pool, any_false_alarm, coverage, false_alarms, power

POOLS = {name: Pool(Records.read(name)) for name in NAMES}


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
@pytest.mark.parametrize("seeds", [2, 3])
def test_the_same_method_differs_from_itself_by_chance_only(pool, seeds):
    wrong, covered = false_alarms(pool, seeds, MANY)
    assert wrong <= 7 and covered >= 93


def test_a_test_that_ignores_seeds_would_be_caught():
    """The same draws, each compared as single models: what this study is there to find."""
    pool, rng, wrong = POOLS["digits-pixels"], np.random.default_rng(0), []
    for _ in range(100):
        drawn, _ = pool.draw(rng, [REFERENCE] * 2, 1)
        (own,), (other,) = drawn.values()
        right = [one.answers.correct for one in (own, other)]
        gap, error = right[0].mean() - right[1].mean(), (right[0] ^ right[1]).sum() ** 0.5 / len(right[0])
        wrong.append(abs(gap) > 1.96 * error)
    assert np.mean(wrong) > 0.2


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_few_reports_on_six_equal_methods_name_one_as_different(pool):
    assert any_false_alarm(pool, 6, 3, 200) <= 9  # nominal 5, with an error of 1.5


@pytest.mark.parametrize("pool", POOLS.values(), ids=POOLS)
def test_intervals_cover_the_accuracies_of_models_and_methods(pool):
    assert min(coverage(pool, 300)) >= 93


def test_a_large_difference_is_seen_and_covered():
    found = power(POOLS["crisis"], "bsoftmax", 3, 100)
    assert found.truth > 5 and found.seen >= 95 and found.covered >= 90
