import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstail.metrics import Difference, PairAccuracy, mean_interval, paired_difference, wilson

VIEWS = ("average", "worst_domain", "pair_average", "worst_pair")
# Outcomes of one sample: neither model right, only b, only a, both.
A, B = np.array([False, False, True, True]), np.array([False, True, False, True])


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


def compare(outcome: np.ndarray, y: np.ndarray, domain: np.ndarray, shape: tuple[int, int], **options) -> Difference:
    options = {"resamples": 300, **options}
    return paired_difference(A[outcome], B[outcome], y, domain, num_domains=shape[0], num_classes=shape[1], **options)


def draw_outcomes(generator: np.random.Generator, chance: np.ndarray, per_pair: int) -> tuple[np.ndarray, ...]:
    """Outcomes (N,), y and domain of `per_pair` samples in each pair, by chances (D, C, 4)."""
    domain, y = (index.repeat(per_pair) for index in np.divmod(np.arange(chance[..., 0].size), chance.shape[1]))
    edges = chance.cumsum(axis=-1)[domain, y]  # (N, 4)
    return (generator.random((len(y), 1)) > edges[:, :3]).sum(axis=1), y, domain


@st.composite
def samples(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[int, int]]:
    shape = draw(st.integers(1, 3)), draw(st.integers(1, 3))
    sample = st.tuples(st.integers(0, 3), st.integers(0, shape[1] - 1), st.integers(0, shape[0] - 1))
    columns = np.array(draw(st.lists(sample, min_size=1, max_size=40))).T
    return *columns, shape


@given(samples(), st.sampled_from(VIEWS))
def test_estimate_is_the_difference_of_the_views(case: tuple, of: str):
    outcome, y, domain, shape = case
    a, b = (
        PairAccuracy.from_predictions(
            np.where(right[outcome], y, -1), y, domain, num_domains=shape[0], num_classes=shape[1]
        )
        for right in (A, B)
    )
    difference = compare(*case, of=of, resamples=50)
    assert difference.estimate == pytest.approx(getattr(a, of) - getattr(b, of), abs=1e-12)
    assert -1 <= difference.low <= difference.high <= 1
    assert 1 / 51 <= difference.p_value <= 1


@given(samples(), st.sampled_from(VIEWS))
def test_identical_models_do_not_differ(case: tuple, of: str):
    outcome, y, domain, shape = case
    same = np.where(outcome >= 2, 3, 0)
    found = compare(same, y, domain, shape, of=of)
    assert found.estimate == 0 and found.low <= 1e-12 and found.high >= -1e-12
    if of in ("average", "pair_average"):
        assert found.p_value > 0.7


def test_equal_answers_to_many_samples_leave_little_doubt():
    y = np.repeat([0, 1], 1000)
    found = compare(np.full(2000, 3), y, np.zeros(2000, int), (1, 2))
    assert -0.01 < found.low <= 0 <= found.high < 0.01 and found.p_value == 1


def test_one_answer_more_is_no_evidence():
    # One sample per pair, of which one model has one more right: without smoothing every resample would agree.
    found = compare(np.array([2, 3, 3, 3]), np.arange(4), np.zeros(4, int), (1, 4))
    assert found.estimate == 0.25 and found.low < 0 and found.p_value > 0.1
    found = compare(np.array([2]), np.array([0]), np.array([0]), (1, 1))
    assert found.estimate == 1 and found.low < 0.5


@pytest.mark.parametrize("pairs", [6, 40])
@pytest.mark.parametrize("per_pair", [1, 2, 5])
def test_the_interval_covers_the_truth_with_few_samples_per_pair(pairs: int, per_pair: int):
    generator, covered = np.random.default_rng(0), []
    chance = np.tile([0.1, 0.08, 0.12, 0.7], (1, pairs, 1))
    for seed in range(150):
        found = compare(*draw_outcomes(generator, chance, per_pair), (1, pairs), seed=seed)
        covered.append(found.low <= 0.04 <= found.high)
    assert np.mean(covered) > 0.88


@given(samples(), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(case: tuple, random):
    outcome, y, domain, shape = case
    order = random.sample(range(len(y)), len(y))
    shuffled = compare(outcome[order], y[order], domain[order], shape, resamples=50)
    assert shuffled == compare(*case, resamples=50)


@pytest.mark.parametrize("of", VIEWS)
def test_a_clearly_better_model(of: str):
    generator = np.random.default_rng(0)
    chance = np.tile([0.05, 0.02, 0.33, 0.6], (2, 3, 1))
    outcome, y, domain = draw_outcomes(generator, chance, per_pair=60)
    # Beside the pairs with samples, an empty domain and a class that never occurs.
    better = compare(outcome, y, domain, (3, 4), of=of)
    assert 0 < better.low < better.estimate < better.high
    assert better.p_value == pytest.approx(1 / 301)
    worse = compare(np.array([0, 2, 1, 3])[outcome], y, domain, (3, 4), of=of)
    assert worse.high < 0
    assert worse.estimate == -better.estimate


def test_the_bootstrap_resamples_samples_within_pairs():
    generator = np.random.default_rng(2)
    outcome = generator.choice(4, size=60, p=[0.1, 0.2, 0.3, 0.4])
    domain, y = np.divmod(np.repeat([0, 1, 2], [30, 20, 10]), 2)
    rows = [np.flatnonzero((domain == d) & (y == c)) for d, c in [(0, 0), (0, 1), (1, 0)]]
    drawn = {"pair": [], "domain": []}
    for _ in range(3000):
        # One draw of rows for both models, pair by pair.
        again = []
        for pair in rows:
            # Of n + 2 samples, two are from all pairs, and of the N + 2 there, two are any of the four outcomes. Two
            # more of these four are spread over all pairs.
            anything, smooth = generator.random((2, len(pair))) < [[2 / 62], [2 / (len(pair) + 2)]]
            pooled = np.where(anything, generator.integers(4, size=len(pair)), generator.choice(outcome, len(pair)))
            mixed = np.where(smooth, pooled, outcome[generator.choice(pair, size=len(pair))])
            spread = generator.random(len(pair)) < 2 * len(pair) / 60 / (len(pair) + 2 + 2 * len(pair) / 60)
            again.append(np.where(spread, generator.integers(4, size=len(pair)), mixed))
        for group, parts in (("pair", again), ("domain", [np.concatenate(again[:2]), again[2]])):
            drawn[group].append([[right[part].mean() for part in parts] for right in (A, B)])
    for of, group, reduce in (
        ("average", "domain", np.mean),
        ("worst_domain", "domain", np.min),
        ("pair_average", "pair", np.mean),
        ("worst_pair", "pair", np.min),
    ):
        accuracy = np.array(drawn[group])  # (3000, 2, groups)
        fast = compare(outcome, y, domain, (2, 2), of=of, resamples=3000, confidence=0.8)
        (a, b), (mean_a, mean_b) = reduce(accuracy, axis=-1).T, reduce(accuracy.mean(axis=0), axis=-1)
        slow = (a - b) - (mean_a - mean_b) + fast.estimate
        assert (fast.low, fast.high) == pytest.approx(np.quantile(slow, [0.1, 0.9]), abs=0.02), of


@pytest.mark.parametrize("of", VIEWS)
def test_the_p_value_swaps_the_answers_of_both_models(of: str):
    generator = np.random.default_rng(2)
    outcome = generator.choice(4, size=60, p=[0.1, 0.2, 0.3, 0.4])
    domain, y = np.divmod(np.repeat([0, 1, 2], [30, 20, 10]), 2)
    group = np.arange(60) // 2

    def difference(outcomes: np.ndarray) -> float:
        sizes = {"num_domains": 2, "num_classes": 2}
        a, b = (PairAccuracy.from_predictions(np.where(right[outcomes], y, -1), y, domain, **sizes) for right in (A, B))
        return getattr(a, of) - getattr(b, of)

    for of_sample in (np.arange(60), group):
        swaps = generator.integers(0, 2, size=(500, 60))[:, of_sample]
        slow = [abs(difference(np.where(swap, np.array([0, 2, 1, 3])[outcome], outcome))) for swap in swaps]
        expected = np.mean(np.array(slow) >= abs(difference(outcome)) - 1e-9)
        found = compare(outcome, y, domain, (2, 2), of=of, resamples=3000, group=of_sample)
        assert found.p_value == pytest.approx(expected, abs=0.07)


@pytest.mark.parametrize("differing", [1, 3, 5])
def test_a_few_samples_on_which_models_differ_are_no_evidence(differing: int):
    y, domain = np.tile(np.repeat([0, 1], 40), 2), np.repeat([0, 1], 80)
    outcome = np.where(np.arange(160) % 7, 3, 0)
    outcome[np.flatnonzero(outcome == 3)[-differing:]] = 2  # only the first model is right
    found = compare(outcome, y, domain, (2, 2), resamples=2000)
    assert found.p_value == pytest.approx(2 * 0.5**differing, abs=0.05)
    assert found.low <= 0 or differing == 5


@pytest.mark.parametrize("rate", [0.005, 0.02])
def test_equal_models_that_hardly_differ_are_not_told_apart(rate: float):
    generator = np.random.default_rng(0)
    chance = np.tile([0.3 - rate, rate / 2, rate / 2, 0.7], (2, 2, 1))
    found = [compare(*draw_outcomes(generator, chance, per_pair=40), (2, 2), seed=seed) for seed in range(100)]
    assert np.mean([one.p_value < 0.05 for one in found]) <= 0.05
    assert np.mean([one.low > 0 or one.high < 0 for one in found]) <= 0.08


def test_what_is_hard_for_both_cancels():
    # The same two accuracies, once right on the same samples and once independently of one another.
    y = domain = np.zeros(100, int)
    together = compare(np.repeat([0, 2, 3], [45, 10, 45]), y, domain, (1, 1))
    apart = compare(np.repeat([0, 1, 2, 3], [25, 20, 30, 25]), y, domain, (1, 1))
    assert together.estimate == pytest.approx(apart.estimate)
    assert together.high - together.low < 0.6 * (apart.high - apart.low)


@pytest.mark.parametrize("of", ["pair_average", "average", "worst_domain"])
def test_the_interval_covers_the_truth(of: str):
    generator = np.random.default_rng(0)
    chance = generator.dirichlet([1, 0.7, 1.4, 5], size=(3, 4))
    right_a, right_b = chance[..., 2] + chance[..., 3], chance[..., 1] + chance[..., 3]
    if of == "worst_domain":
        truth = right_a.mean(axis=1).min() - right_b.mean(axis=1).min()
    else:  # with equally many samples in every pair the two averages agree
        truth = right_a.mean() - right_b.mean()
    covered = []
    for seed in range(200):
        found = compare(*draw_outcomes(generator, chance, per_pair=40), (3, 4), of=of, seed=seed)
        covered.append(found.low <= truth <= found.high)
    assert 0.88 <= np.mean(covered) <= 0.99


def test_p_values_of_equal_models_are_not_too_small():
    generator = np.random.default_rng(0)
    chance = np.tile([0.1, 0.15, 0.15, 0.6], (2, 3, 1))
    p_values = [
        compare(*draw_outcomes(generator, chance, per_pair=40), (2, 3), seed=seed).p_value for seed in range(200)
    ]
    assert 0.01 <= np.mean(np.array(p_values) < 0.05) <= 0.1
    assert 0.4 <= np.mean(np.array(p_values) < 0.5) <= 0.6


def test_the_seed_decides():
    case = (np.repeat([0, 1, 2, 3], 10), np.tile([0, 1], 20), np.zeros(40, int), (1, 2))
    assert compare(*case, seed=5) == compare(*case, seed=5)
    assert compare(*case, seed=5) != compare(*case, seed=6)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"correct_a": np.array([1, 0])}, "correct_a is int64 .* pass predicted == y"),
        ({"correct_b": np.array([True])}, r"correct_b is bool of shape \(1,\)"),
        ({"y": np.array([0, 2])}, "y of sample 1 is 2"),
        ({"of": "best"}, "unknown view 'best'"),
        ({"group": np.array([0])}, "group is"),
        ({"confidence": 1.5}, "confidence is 1.5"),
        (
            dict.fromkeys(("correct_a", "correct_b"), np.zeros(0, bool)) | {"y": [], "domain": []},
            "no test samples",
        ),
    ],
)
def test_wrong_input_is_refused(changed: dict, message: str):
    right = np.array([True, False])
    arguments = {"correct_a": right, "correct_b": right, "y": np.array([0, 1]), "domain": np.array([0, 0])}
    with pytest.raises(ValueError, match=message):
        paired_difference(**{**arguments, "num_domains": 1, "num_classes": 2, **changed})


def test_several_runs_count_by_their_mean_and_are_resampled_together():
    rng = np.random.default_rng(0)
    y, domain = np.repeat([0, 1, 0], [30, 20, 25]), np.repeat([0, 0, 1], [30, 20, 25])
    a, b = rng.random((3, 75)) < 0.8, rng.random((2, 75)) < 0.6
    found = paired_difference(a, b, y, domain, num_domains=2, num_classes=2)
    gap = a.mean(0) - b.mean(0)
    parts = [gap[:30], gap[30:50], gap[50:]]
    assert found.estimate == pytest.approx(np.mean([part.mean() for part in parts]))
    drawn = [np.mean([rng.choice(part, len(part)).mean() for part in parts]) for _ in range(2000)]
    assert found.low == pytest.approx(np.quantile(drawn, 0.025), abs=0.015)
    assert found.high == pytest.approx(np.quantile(drawn, 0.975), abs=0.015)


@given(samples(), st.sampled_from(VIEWS), st.randoms(use_true_random=False))
def test_groups_of_one_are_samples(case: tuple, of: str, random):
    group = np.array(random.sample(range(100), len(case[1])))
    assert compare(*case, of=of, resamples=50, group=group) == compare(*case, of=of, resamples=50)


def test_the_bootstrap_resamples_whole_groups_within_pairs():
    generator = np.random.default_rng(3)
    sizes = generator.integers(1, 5, size=24)
    group = np.repeat(np.arange(24), sizes)
    pair = group % 3
    outcome = np.where(
        generator.random(len(group)) < 0.7, generator.choice(4, 24)[group], generator.choice(4, len(group))
    )
    units = [(outcome[group == g], g % 3) for g in range(24)]
    corners = [np.full(1, kind) for kind in range(4)]
    drawn = []
    for _ in range(4000):
        gaps = []
        for p in range(3):
            own = [answers for answers, of in units if of == p]
            again = []
            for _ in own:
                # Of 8 + 2 groups, two are from all pairs, and of the 24 + 2 there, two are any of the four outcomes.
                from_all = generator.random() < 2 / 10
                pool = (
                    corners if from_all and generator.random() < 2 / 26 else [u for u, _ in units] if from_all else own
                )
                answers = pool[generator.integers(len(pool))]
                weight = sizes.mean() if pool is corners else len(answers)
                again.append((weight * (A[answers].mean() - B[answers].mean()), weight))
            gaps.append(sum(gap for gap, _ in again) / sum(weight for _, weight in again))
        drawn.append(np.mean(gaps))
    fast = compare(outcome, pair, np.zeros_like(pair), (1, 3), group=group, resamples=4000, confidence=0.8)
    truth = np.mean([A[outcome[pair == p]].mean() - B[outcome[pair == p]].mean() for p in range(3)])
    assert fast.estimate == pytest.approx(truth)
    slow = np.array(drawn) - np.mean(drawn) + truth
    assert (fast.low, fast.high) == pytest.approx(np.quantile(slow, [0.1, 0.9]), abs=0.02)


@pytest.mark.parametrize("correlation", [1.0, 0.5])
@pytest.mark.parametrize(("pairs", "number"), [(1, 5), (6, 3), (40, 4)])
def test_the_interval_covers_the_truth_of_groups(pairs: int, number: int, correlation: float):
    generator, chance, covered = np.random.default_rng(0), [0.1, 0.08, 0.12, 0.7], []
    for seed in range(150):
        group = np.repeat(np.arange(pairs * number), generator.integers(2, 6, size=pairs * number))
        of_group, own = generator.choice(4, pairs * number, p=chance)[group], generator.choice(4, len(group), p=chance)
        outcome = np.where(generator.random(len(group)) < correlation**0.5, of_group, own)
        y = group // number
        both = [compare(outcome, y, 0 * y, (1, pairs), seed=seed, group=of) for of in (None, group)]
        covered.append([found.low <= 0.04 <= found.high for found in both])
    naive, by_group = np.mean(covered, axis=0)
    assert naive < 0.88 and by_group > 0.87


def test_interval_of_a_mean_is_students():
    values = [1.0, 2.5, 4.0]
    deviation = math.sqrt(sum((v - 2.5) ** 2 for v in values) / 2)
    half = 4.302653 * deviation / math.sqrt(3)  # t with 2 degrees of freedom
    assert mean_interval(values) == pytest.approx((2.5 - half, 2.5 + half), rel=1e-6)
