"""Whether methods differ: against loops over seeds and samples, and drawn again many times."""

from dataclasses import replace
from statistics import mean, variance

import numpy as np
import pytest
from scipy import stats

from crosstail.metrics import Answered, Answers, Models, compare_methods, find
from crosstail.metrics._methods import holm

SHAPE = 2, 3


def answered(correct, y, domain, group=None, rows=None, shape=SHAPE):
    """Answers of a model that is right where `correct` says so."""
    names = {"domains": list("pqr")[: shape[0]], "classes": list("abcdefghijkl")[: shape[1]]}
    counts = np.ones(shape, int)
    return Answers(
        **names, counts=counts, y=y, domain=domain, predicted=np.where(correct, y, -1), group=group, row=rows
    )


def samples(each, shape=SHAPE):
    """Class and domain of as many samples of every pair."""
    domain, y = np.divmod(np.repeat(np.arange(shape[0] * shape[1]), each), shape[1])
    return y, domain


def methods(*stacks, y, domain, **about):
    """Methods "a", "b", … from answers (S, N) of their seeds."""
    return {
        name: [Answered(seed, answered(row, y, domain, **about)) for seed, row in enumerate(stack)]
        for name, stack in zip("abcdef", stacks, strict=False)
    }


def between(*stacks, **about):
    return compare_methods(methods(*stacks, **about), "b", "pair_average")["a"]


def spread_of_mean(values, pair, group):
    """Variance of an average over pairs of sums over units, with loops: Σ_p k / (k − 1) Σ_g (Σ (v − c_p) / (n P))².

    c_p = (k v̄_p + v̄) / (k + 1), where v̄ is the mean over pairs.
    """
    total = 0.0
    overall = mean(mean(values[i] for i in range(len(pair)) if pair[i] == p) for p in set(pair))
    for p in sorted(set(pair)):
        own = [i for i in range(len(pair)) if pair[i] == p]
        units = sorted({group[i] for i in own})
        centre = (len(units) * mean(values[i] for i in own) + overall) / (len(units) + 1)
        sums = [sum(values[i] - centre for i in own if group[i] == u) / len(own) / len(set(pair)) for u in units]
        total += len(units) / (len(units) - 1) * sum(one**2 for one in sums)
    return total


@pytest.mark.parametrize("grouped", [False, True])
def test_the_error_is_that_of_the_two_way_model(grouped):
    rng = np.random.default_rng(0)
    y, domain = samples(6)
    pair, group = (domain * 3 + y).tolist(), np.arange(len(y)) // 2 if grouped else np.arange(len(y))
    a, b = rng.random((4, len(y))) < 0.8, rng.random((3, len(y))) < 0.4
    found = between(a, b, y=y, domain=domain, group=group if grouped else None)
    averages = [[mean(float(c[np.array(pair) == p].mean()) for p in range(6)) for c in side] for side in (a, b)]
    across = spread_of_mean((a.mean(0) - b.mean(0)).tolist(), pair, group)
    parts = [across]
    for side in (a, b):
        each = mean(spread_of_mean(c.astype(float).tolist(), pair, group) for c in side)
        parts[0] -= max(0, each - spread_of_mean(side.mean(0).tolist(), pair, group)) / (len(side) - 1)
    parts[0] = max(0, parts[0])
    parts += [variance(values) / len(values) for values in averages]
    difference = mean(averages[0]) - mean(averages[1])
    assert found.estimate == pytest.approx(difference) and found.retrained
    reach, error = (found.high - found.low) / 2, sum(parts) ** 0.5
    # The degrees of freedom lie between the fewest seeds' and infinity.
    assert stats.t.ppf(0.975, 1e9) * error < reach < stats.t.ppf(0.975, 2) * error
    assert 2 * stats.norm.sf(difference / error) < found.p_value < 2 * stats.t.sf(difference / error, 2)


@pytest.mark.parametrize("seeds", [1, 3])
def test_two_answers_of_one_pair_do_not_make_a_difference_significant(seeds):
    """The models differ in both samples of a pair with two: no sign that this pair would be the same on others."""
    y, domain = samples(2)
    a = np.ones((seeds, len(y)), bool)
    b = a & ((y != 1) | (domain != 0))
    a[-1, -1] = False
    found = between(a, b, y=y, domain=domain)
    assert found is not None and not found.sure and found.low < 0 < found.estimate < found.high


def test_the_p_value_and_the_interval_agree():
    rng, y_domain = np.random.default_rng(1), samples(8)
    seen = set()
    for share in np.linspace(0.3, 0.7, 60):
        a, b = rng.random((3, 48)) < 0.5, rng.random((3, 48)) < share
        found = between(a, b, y=y_domain[0], domain=y_domain[1])
        assert (found.p_value < 0.05) == (found.low > 0 or found.high < 0)
        seen.add(found.p_value < 0.05)
        assert (-found).low == -found.high and (-found).estimate == -found.estimate
    assert seen == {False, True}


def test_equal_answers_do_not_differ():
    y, domain = samples(5)
    same = np.arange(len(y)) % 3 > 0
    found = between([same], [same], y=y, domain=domain)
    assert (found.estimate, found.low, found.high, found.p_value) == (0, 0, 0, 1) and not found.retrained


def test_one_answer_more_is_no_evidence():
    y, domain = samples(1)
    more, fewer = np.ones(6, bool), np.arange(6) > 0
    found = between([more], [fewer], y=y, domain=domain)
    assert found.estimate == pytest.approx(1 / 6) and found.low < 0 and found.p_value > 0.3
    one = methods([[True]], [[False]], y=np.array([0]), domain=np.array([0]))
    assert compare_methods(one, "b", "pair_average") == {"a": None}  # a single sample does not show how it varies


@pytest.mark.parametrize("differing", [2, 4, 6, 9])
def test_a_few_samples_on_which_models_differ_weigh_about_as_in_a_sign_test(differing):
    y, domain = samples(100)
    worse = np.ones(600, bool)
    worse[:: 600 // differing][:differing] = False
    found = between([np.ones(600, bool)], [worse], y=y, domain=domain)
    assert 0.5 < found.p_value / (2 * 0.5**differing) < 4


def test_what_is_hard_for_both_cancels():
    y, domain = samples(40)
    hard = np.arange(240) % 2 == 0
    right, wrong = hard.copy(), hard & (np.arange(240) % 20 > 0)
    together = between([right], [wrong], y=y, domain=domain)
    apart = between([np.roll(right, 1)], [wrong], y=y, domain=domain)
    assert together.estimate == pytest.approx(apart.estimate) and together.high < apart.high


def test_a_method_with_one_seed_gets_no_more_than_these_models():
    rng, (y, domain) = np.random.default_rng(2), samples(20)
    three, one = rng.random((3, 120)) < 0.7, rng.random((1, 120)) < 0.5
    found = compare_methods(methods(three, one, one[:, ::-1], three[::-1] ^ one, y=y, domain=domain), "a", "average")
    assert [test.retrained for test in found.values()] == [False, False, True]
    assert [test.adjusted for test in found.values()] == holm([test.p_value for test in found.values()]).tolist()


def test_seeds_that_differ_more_say_less():
    y, domain = samples(50)
    rng = np.random.default_rng(3)
    base = rng.random(300) < 0.6
    calm = np.stack([base ^ (rng.random(300) < 0.02) for _ in range(3)])
    better = np.stack([base | (rng.random(300) < share) for share in (0.10, 0.11, 0.12)])
    uneven = np.stack([base | (rng.random(300) < share) for share in (0.0, 0.1, 0.25)])
    steady, noisy = (between(side, calm, y=y, domain=domain) for side in (better, uneven))
    assert steady.p_value < 0.05 < noisy.p_value


def test_other_test_samples_are_not_compared():
    rng, (y, domain) = np.random.default_rng(4), samples(6)
    found = methods(rng.random((2, 36)) < 0.5, rng.random((2, 36)) < 0.5, y=y, domain=domain)
    moved = [replace(one, answers=replace(one.answers, row=np.arange(36) + 1)) for one in found["a"]]
    assert compare_methods(found | {"a": moved}, "b", "pair_average") == {"a": None}
    assert Models.of([one.sampled for one in (found["a"][0], moved[1])], "average") is None
    assert Models.of([found["a"][0].sampled, None], "average") is None


def test_differences_seed_by_seed_are_one_test_of_seeds_with_the_same_samples_and_of_others():
    """The same models on the same samples vary by samples; on other samples, by seeds."""
    rng = np.random.default_rng(5)
    y, domain = samples(200, (1, 2))
    a, b = rng.random(400) < 0.7, rng.random(400) < 0.6

    def seeds(parts):
        return [
            (find("accuracy").sampled(answered(right[own], y[own], domain[own], rows=own, shape=(1, 2))))
            for own in parts
            for right in (a, b)
        ]

    def error(parts):
        found = seeds(parts)
        models = Models.paired(zip(found[::2], found[1::2], strict=True), "pair_average")
        rest = max(0, (models.influence**2).sum() - models.of_both)
        return (models.of_seeds + rest) ** 0.5

    whole = np.arange(400)
    assert error([whole, whole, whole]) == pytest.approx(error([whole, whole]))
    quarters = [whole[i::8] for i in range(8)]
    assert error(quarters) == pytest.approx(error([whole, whole]), rel=0.5)


@pytest.mark.parametrize("of", ["pair_average", "average"])
@pytest.mark.parametrize(
    ("shape", "each", "seeds", "together"),
    [
        ((2, 3), 2, 1, 1),
        ((3, 10), 1, 1, 1),
        ((3, 4), 10, 1, 1),
        ((3, 4), 12, 1, 4),
        ((3, 4), 8, 2, 1),
        ((2, 3), 9, 3, 3),
    ],
)
def test_equal_methods_are_told_apart_by_chance_only_and_intervals_cover(shape, each, seeds, together, of):
    rng, (y, domain) = np.random.default_rng(0), samples(each, shape)
    wrong, covered, draws = 0, 0, 300
    group, level = np.arange(len(y)) // together, rng.normal(0.3, 1, shape)
    truth = [stats.norm.cdf((level + effect) / 2**0.5 / 1.0) for effect in (0.0, 0.5)]
    for _ in range(draws):
        shared = rng.normal(0, 1, group.max() + 1)[group]
        stacks = [level[domain, y] + e + shared + rng.normal(0, 1, (seeds, len(y))) > 0 for e in (0.0, 0.0, 0.5)]
        about = {"y": y, "domain": domain, "group": group if together > 1 else None, "shape": shape}
        tests = compare_methods(methods(*stacks, **about), "a", of)
        assert tests["b"] is None or tests["b"].retrained == (seeds > 1)
        wrong += tests["b"] is not None and tests["b"].p_value < 0.05
        gain = (truth[1] - truth[0]).mean()
        covered += tests["c"] is None or tests["c"].low <= gain <= tests["c"].high
    assert wrong / draws <= 0.08 and covered / draws >= 0.92
