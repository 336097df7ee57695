import json
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.metrics.answered import answered

from crosstail.metrics import SHOTS, PairAccuracy, average_interval, group_squares, shot_group, wilson

VIEWS = ("average", "worst_domain", "pair_average", "worst_pair")


@dataclass(frozen=True)
class Predictions:
    """What a classifier said: samples of (predicted, y, domain)."""

    num_domains: int
    num_classes: int
    samples: list[tuple[int, int, int]]

    def accuracy(self) -> PairAccuracy:
        columns = np.array(self.samples, dtype=np.int64).reshape(-1, 3).T
        return PairAccuracy.from_predictions(*columns, num_domains=self.num_domains, num_classes=self.num_classes)


@st.composite
def predictions(draw: st.DrawFn, max_size: int = 60) -> Predictions:
    num_domains, num_classes = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    label = st.integers(0, num_classes - 1)
    sample = st.tuples(label, label, st.integers(0, num_domains - 1))
    return Predictions(num_domains, num_classes, draw(st.lists(sample, max_size=max_size)))


@st.composite
def tables(draw: st.DrawFn) -> PairAccuracy:
    shape = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    totals = [[draw(st.integers(0, 30)) for _ in range(shape[1])] for _ in range(shape[0])]
    return PairAccuracy(np.array([[draw(st.integers(0, total)) for total in row] for row in totals]), np.array(totals))


def share(outcomes: list[bool]) -> float | None:
    return sum(outcomes) / len(outcomes) if outcomes else None


def mean(values: list[float | None]) -> float | None:
    present = [value for value in values if value is not None]
    return sum(present) / len(present) if present else None


def lowest(values: list[float | None]) -> float | None:
    return min((value for value in values if value is not None), default=None)


def oracle(p: Predictions) -> dict[str, object]:
    """Every figure from the list of samples, one at a time."""
    by_domain = [share([a == y for a, y, d in p.samples if d == k]) for k in range(p.num_domains)]
    by_pair = {
        (k, c): share([a == y for a, y, d in p.samples if (d, y) == (k, c)])
        for k in range(p.num_domains)
        for c in range(p.num_classes)
    }
    worst = lowest(list(by_pair.values()))
    return {
        "domains": by_domain,
        "pairs": by_pair,
        "average": mean(by_domain),
        "worst_domain": lowest(by_domain),
        "pair_average": mean(list(by_pair.values())),
        "worst_pair": worst,
        "worst_pair_index": max(
            (k for k, v in by_pair.items() if v == worst and v is not None),
            key=lambda pair: sum((d, y) == pair for _, y, d in p.samples),
            default=None,
        ),
    }


def test_a_table_worked_out_by_hand():
    accuracy = PairAccuracy(np.array([[9, 1, 0], [0, 0, 0], [3, 4, 0]]), np.array([[10, 2, 0], [0, 0, 0], [4, 4, 8]]))
    assert accuracy.domains == [10 / 12, None, 7 / 16]
    assert accuracy.average == pytest.approx((10 / 12 + 7 / 16) / 2)
    assert accuracy.worst_domain == 7 / 16
    assert accuracy.pair_average == pytest.approx((0.9 + 0.5 + 0.75 + 1.0 + 0.0) / 5)
    assert accuracy.worst_pair == 0.0
    assert accuracy.worst_pair_index == (2, 2)
    np.testing.assert_array_equal(accuracy.matrix, [[0.9, 0.5, np.nan], [np.nan, np.nan, np.nan], [0.75, 1.0, 0.0]])
    shots = accuracy.shots([[101, 100, 500], [7, 7, 7], [21, 20, 1]])
    assert shots == {"many": 0.9, "medium": pytest.approx(0.625), "few": 0.5, "zero": None}


@given(predictions())
def test_every_view_equals_the_loop(p: Predictions):
    accuracy, expected = p.accuracy(), oracle(p)
    assert accuracy.domains == expected["domains"]
    assert accuracy.worst_pair_index == expected["worst_pair_index"]
    for of in VIEWS:
        assert getattr(accuracy, of) == pytest.approx(expected[of], nan_ok=False), of
    for (d, c), value in expected["pairs"].items():
        found = accuracy.matrix[d, c]
        assert np.isnan(found) if value is None else found == value


@given(predictions(), st.data())
def test_shots_equal_the_loop(p: Predictions, data: st.DataObject):
    count = st.sampled_from([0, 1, 4, 5, 6, 9, 10, 11, 50])
    counts = [[data.draw(count) for _ in range(p.num_classes)] for _ in range(p.num_domains)]
    members: dict[str, list[float | None]] = {"many": [], "medium": [], "few": [], "zero": []}
    for (d, c), value in oracle(p)["pairs"].items():
        n = counts[d][c]
        shot = "many" if n > 10 else "medium" if 5 < n <= 10 else "few" if 1 <= n <= 5 else "zero"
        members[shot].append(value)
    shots = p.accuracy().shots(counts, many=10, few=5)
    assert shots == {shot: pytest.approx(mean(values)) for shot, values in members.items()}


@given(predictions(), st.randoms(use_true_random=False))
def test_the_order_of_samples_does_not_matter(p: Predictions, random):
    shuffled = random.sample(p.samples, len(p.samples))
    assert Predictions(p.num_domains, p.num_classes, shuffled).accuracy().to_json() == p.accuracy().to_json()


@given(predictions(), st.data())
def test_renaming_domains_and_classes_changes_no_view(p: Predictions, data: st.DataObject):
    domain = data.draw(st.permutations(range(p.num_domains)))
    label = data.draw(st.permutations(range(p.num_classes)))
    renamed = Predictions(
        p.num_domains, p.num_classes, [(label[a], label[y], domain[d]) for a, y, d in p.samples]
    ).accuracy()
    for of in VIEWS:
        assert getattr(renamed, of) == pytest.approx(getattr(p.accuracy(), of))
    np.testing.assert_array_equal(renamed.matrix[np.ix_(domain, label)], p.accuracy().matrix)


@given(predictions(), st.data())
def test_hits_of_two_halves_add_up(p: Predictions, data: st.DataObject):
    cut = data.draw(st.integers(0, len(p.samples)))
    halves = [Predictions(p.num_domains, p.num_classes, part).accuracy() for part in (p.samples[:cut], p.samples[cut:])]
    whole = p.accuracy()
    np.testing.assert_array_equal(halves[0].hits + halves[1].hits, whole.hits)
    np.testing.assert_array_equal(halves[0].totals + halves[1].totals, whole.totals)


@given(predictions(), st.integers(1, 3), st.integers(1, 3))
def test_empty_domains_and_classes_that_never_occur_change_no_view(p: Predictions, domains: int, classes: int):
    wider = Predictions(p.num_domains + domains, p.num_classes + classes, p.samples).accuracy()
    assert wider.domains == p.accuracy().domains + [None] * domains
    for of in VIEWS:
        assert getattr(wider, of) == pytest.approx(getattr(p.accuracy(), of))


@given(tables())
def test_worst_is_at_most_the_average(accuracy: PairAccuracy):
    if accuracy.totals.any():
        assert accuracy.worst_domain <= accuracy.average + 1e-12
        assert accuracy.worst_pair <= accuracy.pair_average + 1e-12
        assert accuracy.worst_pair <= accuracy.worst_domain


def test_one_domain_and_one_class():
    accuracy = PairAccuracy(np.array([[3]]), np.array([[4]]))
    assert [getattr(accuracy, of) for of in VIEWS] == [0.75] * 4
    assert accuracy.worst_pair_index == (0, 0)


def test_no_sample_at_all_is_none_everywhere():
    accuracy = PairAccuracy.from_predictions([], [], [], num_domains=2, num_classes=3)
    assert accuracy.totals.shape == (2, 3)
    assert [getattr(accuracy, of) for of in VIEWS] == [None] * 4
    assert accuracy.worst_pair_index is None
    assert accuracy.domains == [None, None]
    assert accuracy.shots(np.ones((2, 3))) == dict.fromkeys(SHOTS)
    assert [accuracy.interval(of) for of in (*VIEWS, 1, (1, 2))] == [None] * 6


def test_a_prediction_outside_the_classes_is_a_miss():
    accuracy = PairAccuracy.from_predictions([-1, 7, 1], [0, 1, 1], [0, 0, 0], num_domains=1, num_classes=2)
    assert accuracy.hits.tolist() == [[0, 1]]


def test_small_integer_labels_do_not_overflow():
    y, domain = np.array([99], np.uint8), np.array([5], np.uint8)
    accuracy = PairAccuracy.from_predictions(y, y, domain, num_domains=6, num_classes=100)
    assert np.argwhere(accuracy.totals).tolist() == [[5, 99]]


def test_the_table_cannot_change_afterwards():
    hits = np.array([[1]])
    accuracy = PairAccuracy(hits, np.array([[2]]))
    hits += 1
    assert accuracy.worst_pair == 0.5
    with pytest.raises(ValueError, match="read-only"):
        accuracy.totals[0, 0] = 1


@pytest.mark.parametrize(
    ("hits", "totals", "message"),
    [
        ([[1, 3], [5, 0]], [[2, 3], [4, 0]], r"pair \[1, 0\] has 5 hits of 4"),
        ([[1, -1]], [[2, 3]], r"pair \[0, 1\] has -1 hits"),
        ([[0]], [[-2]], r"pair \[0, 0\]"),
        ([[1, 1]], [[2], [2]], r"hits has shape \(1, 2\) but totals has \(2, 1\)"),
        ([1], [2], r"totals is int64 of shape \(1,\)"),
        ([[1]], [[2.5]], "totals is float64"),
    ],
)
def test_an_impossible_table_is_refused(hits: list, totals: list, message: str):
    with pytest.raises(ValueError, match=message):
        PairAccuracy(np.array(hits), np.array(totals))


@pytest.mark.parametrize(
    ("predicted", "y", "domain", "message"),
    [
        ([0, 0], [0, 2], [0, 0], "y of sample 1 is 2, expected 0 to 1"),
        ([0, 0], [0, 0], [0, -1], "domain of sample 1 is -1, expected 0 to 2"),
        ([0, 0], [0, 0], [0, 3], "domain of sample 1 is 3"),
        ([0], [0, 0], [0, 0], "predicted has shape"),
        ([[0.9, 0.1]], [0], [0], "one class per sample"),
        ([0, 0], [0, 0], [0], "expected .N,. for both"),
        ([0.0], [0.5], [0], "y has dtype float64"),
    ],
)
def test_wrong_labels_are_refused(predicted: list, y: list, domain: list, message: str):
    with pytest.raises(ValueError, match=message):
        PairAccuracy.from_predictions(predicted, y, domain, num_domains=3, num_classes=2)


@given(st.lists(st.integers(0, 200), min_size=1), st.integers(0, 60), st.integers(0, 60))
def test_shot_groups_partition_the_pairs(counts: list[int], few: int, more: int):
    group = shot_group([counts], many=few + more, few=few)
    assert group.shape == (1, len(counts))
    assert sum(int(np.sum(group == shot)) for shot in SHOTS) == len(counts)
    # The groups are ordered by count, and zero means zero.
    rank = np.array([SHOTS[::-1].index(shot) for shot in group[0]])
    assert np.all(np.diff(rank[np.argsort(counts)]) >= 0)
    assert ((group[0] == "zero") == (np.array(counts) == 0)).all()


def test_shot_boundaries():
    assert shot_group([[0, 1, 20, 21, 100, 101]]).tolist() == [["zero", "few", "few", "medium", "medium", "many"]]
    assert shot_group([[0, 20, 21]], many=20, few=20).tolist() == [["zero", "few", "many"]]
    with pytest.raises(ValueError, match="few is 30 and many is 20"):
        shot_group([[1]], many=20, few=30)


def test_shots_need_counts_of_the_same_pairs():
    with pytest.raises(ValueError, match=r"counts has shape \(2, 1\), expected \(1, 2\)"):
        PairAccuracy(np.array([[1, 1]]), np.array([[1, 1]])).shots([[5], [5]])


@given(tables())
def test_json_has_every_metric(accuracy: PairAccuracy):
    text = json.dumps(accuracy.to_json(np.full(accuracy.totals.shape, 30)), allow_nan=False)
    record = json.loads(text)
    assert list(record["shots"]) == list(SHOTS)
    assert record["shots"]["medium"] == accuracy.pair_average
    np.testing.assert_array_equal(record["hits"], accuracy.hits)
    np.testing.assert_array_equal(record["totals"], accuracy.totals)
    assert {key: record[key] for key in VIEWS} == {key: getattr(accuracy, key) for key in VIEWS}


def test_json_keys():
    accuracy = PairAccuracy(np.array([[1, 0]]), np.array([[2, 0]]))
    assert accuracy.to_json() == {
        "average": 0.5,
        "worst_domain": 0.5,
        "pair_average": 0.5,
        "worst_pair": 0.5,
        "tenth_percentile": 0.5,
        "hits": [[1, 0]],
        "totals": [[2, 0]],
    }
    assert accuracy.to_json([[3, 0]], many=2, few=1)["shots"] == {
        "many": 0.5,
        "medium": None,
        "few": None,
        "zero": None,
    }


def test_interval_of_a_pair_and_of_a_domain_is_wilson():
    accuracy = PairAccuracy(np.array([[9, 1], [4, 0]]), np.array([[10, 2], [4, 0]]))
    assert accuracy.interval((0, 1)) == wilson(1, 2)
    assert accuracy.interval((1, 0), confidence=0.5) == wilson(4, 4, 0.5)
    assert accuracy.interval((1, 1)) is None
    assert accuracy.interval(0) == wilson(10, 12)
    assert accuracy.interval(np.argmax(accuracy.domains)) == wilson(4, 4)


def test_interval_of_an_average_is_wilsons_with_an_effective_number_of_samples():
    accuracy = PairAccuracy(np.array([[18, 5], [7, 0]]), np.array([[20, 10], [30, 0]]))
    weights = {"pair_average": [1 / 3, 1 / 3, 1 / 3], "average": [20 / 30 / 2, 10 / 30 / 2, 1 / 2]}
    for of, by_pair in weights.items():
        smoothed = variance = 0.0
        for w, (hits, total) in zip(by_pair, [(18, 20), (5, 10), (7, 30)], strict=True):
            p = (hits + 0.5) / (total + 1)
            smoothed += w * p
            variance += w**2 * p * (1 - p) / total / (1 - (1 - w) * total / (total + 1) ** 2)
        effective = smoothed * (1 - smoothed) / variance
        expected = wilson(np.array(getattr(accuracy, of) * effective), np.array(effective), 0.9)
        assert accuracy.interval(of, confidence=0.9) == pytest.approx(expected)


def test_interval_of_an_average_agrees_with_a_bootstrap_where_there_are_many_samples():
    chance, totals = np.array([[0.99, 0.6], [0.3, 0.0]]), np.array([[900, 400], [600, 0]])
    accuracy = PairAccuracy((chance * totals).astype(int), totals)
    drawn = np.random.default_rng(1).binomial(totals, chance, size=(4000, 2, 2))
    domains = drawn.sum(axis=2) / totals.sum(axis=1)
    pairs = drawn[:, [0, 0, 1], [0, 1, 0]] / totals[[0, 0, 1], [0, 1, 0]]
    for of, averages in (("average", domains.mean(axis=1)), ("pair_average", pairs.mean(axis=1))):
        assert accuracy.interval(of) == pytest.approx(np.quantile(averages, [0.025, 0.975]), abs=0.003)


@pytest.mark.parametrize("of", ["average", "pair_average"])
@pytest.mark.parametrize("right", [0, 1])
def test_interval_of_a_small_or_perfect_sample_is_wide(of: str, right: int):
    # One pair is a single proportion; pairs of one sample each are no more certain than one pair with all of them.
    assert PairAccuracy(np.array([[6 * right]]), np.array([[6]])).interval(of) == wilson(6 * right, 6)
    low, high = PairAccuracy(np.full((2, 3), right), np.ones((2, 3), int)).interval(of)
    assert low <= wilson(6 * right, 6)[0] + 1e-9 and high >= wilson(6 * right, 6)[1] - 1e-9
    # Twelve perfect pairs and two wrong answers, one test sample each: every pair is at 0 or 1.
    low, high = PairAccuracy(np.array([[1] * 12 + [0] * 2]), np.ones((1, 14), int)).interval(of)
    assert low < 12 / 14 - 0.15 and high > 12 / 14 + 0.07


@given(tables())
def test_interval_of_an_average_holds_it_and_has_a_width(accuracy: PairAccuracy):
    if accuracy.totals.any():
        for of in ("average", "pair_average"):
            low, high = accuracy.interval(of)
            assert 0 <= low <= getattr(accuracy, of) + 1e-9 and getattr(accuracy, of) <= high + 1e-9 and high <= 1
            assert high - low > 0.9 / (accuracy.totals.sum() + 4)


def test_interval_is_repeatable_and_narrows_with_samples():
    small = PairAccuracy(np.array([[8, 6], [9, 5]]), np.full((2, 2), 10))
    large = PairAccuracy(small.hits * 100, small.totals * 100)
    assert small.interval() == small.interval("pair_average")
    for of in (*VIEWS, 0, (0, 0)):
        (low, high), (large_low, large_high) = small.interval(of), large.interval(of)
        assert low < large_low < large_high < high, of
        narrow = small.interval(of, confidence=0.5)
        assert low < narrow[0] < narrow[1] < high, of


def test_interval_of_a_worst_view_is_that_of_the_worst():
    accuracy = PairAccuracy(np.array([[18, 0], [7, 2]]), np.array([[20, 0], [30, 3]]))
    assert accuracy.interval("worst_pair", confidence=0.9) == pytest.approx(wilson(7, 30, 0.9))
    assert accuracy.interval("worst_domain", confidence=0.9) == pytest.approx(wilson(9, 33, 0.9))


def test_by_class_a_domain_is_the_mean_over_its_classes():
    accuracy = PairAccuracy(np.array([[18, 0], [6, 3]]), np.array([[20, 0], [30, 4]])).by_class()
    assert accuracy.domains == [0.9, (0.2 + 0.75) / 2] and accuracy.average == (0.9 + 0.475) / 2
    assert accuracy.worst_domain == 0.475 and accuracy.pair_average == pytest.approx((0.9 + 0.2 + 0.75) / 3)
    assert accuracy.interval(0) == pytest.approx(wilson(18, 20))  # of one class
    ends = average_interval(np.array([6, 3]), np.array([30, 4]), np.array([0.5, 0.5]))
    assert accuracy.interval(1) == accuracy.interval("worst_domain") == pytest.approx(ends)
    both = average_interval(np.array([18, 6, 3]), np.array([20, 30, 4]), np.array([0.5, 0.25, 0.25]))
    assert accuracy.interval("average") == PairAccuracy.mean_interval([accuracy], "average") == pytest.approx(both)
    assert PairAccuracy.pooled([accuracy, accuracy]).domains == accuracy.domains
    assert accuracy.only(np.eye(2) > 0).domains == [0.9, 0.75]
    answers = answered([0, 0, 1], np.zeros((3, 2)), [0, 1, 1], [0, 0, 0], 1)
    assert answers.value("balanced_accuracy").domains == [0.75]


@given(tables())
def test_interval_of_a_worst_view_holds_it(accuracy: PairAccuracy):
    if accuracy.totals.any():
        for of in ("worst_domain", "worst_pair"):
            low, high = accuracy.interval(of)
            assert 0 <= low <= getattr(accuracy, of) <= high <= 1


def test_interval_covers_the_truth():
    generator = np.random.default_rng(0)
    chance = generator.uniform(0.7, 0.85, size=(4, 10))
    totals = np.full((4, 10), 30)
    covered = []
    for _ in range(200):
        low, high = PairAccuracy(generator.binomial(totals, chance), totals).interval()
        covered.append(low <= chance.mean() <= high)
    assert 0.88 <= np.mean(covered) <= 0.99


@pytest.mark.parametrize("pairs", [1, 3, 12, 100])
def test_interval_of_an_average_covers_the_truth_from_1_to_50_samples_per_pair(pairs: int):
    # Wilson's coverage oscillates for a single setting; the mean over accuracies and the worst setting have limits.
    generator, weights = np.random.default_rng(pairs), np.full(pairs, 1 / pairs)
    numbers, accuracies = (*range(1, 11), 15, 20, 30, 40, 50), (0.5, 0.7, 0.9, 0.95, 0.99, 1.0)
    covered = np.zeros((len(numbers), len(accuracies)))
    for i, n in enumerate(numbers):
        for j, chance in enumerate(accuracies):
            hits = generator.binomial(n, chance, size=(1000, pairs))
            low, high = average_interval(hits, np.full(pairs, n), weights)
            covered[i, j] = np.mean((low <= chance) & (chance <= high))
    assert covered.min() > 0.82  # 0.86 of Wilson's at 3 × 5 samples and 0.99, less the noise of the simulation
    assert covered.mean(axis=1).min() > 0.93  # over the accuracies, for every n
    assert 0.945 < covered.mean() < 0.985


@pytest.mark.parametrize(
    ("chance", "totals"),
    [
        ([0.98, 0.5], [50, 2]),
        ([0.5, 0.98], [50, 2]),
        ([0.98, 0.4], [50, 1]),
        ([1.0, 0.5], [20, 20]),
        ([0.9, 0.6], [5, 9]),
    ],
)
@pytest.mark.parametrize("pairs", [4, 100])
def test_interval_of_an_average_covers_the_truth_of_unequal_pairs(chance: list, totals: list, pairs: int):
    accuracy, total = np.tile(chance, pairs // 2), np.tile(totals, pairs // 2)
    hits = np.random.default_rng(0).binomial(total, accuracy, size=(2000, pairs))
    low, high = average_interval(hits, total, np.full(pairs, 1 / pairs))
    assert np.mean((low <= accuracy.mean()) & (accuracy.mean() <= high)) > 0.92


def test_the_lower_tail_of_the_pairs():
    hits, totals = np.array([[0, 3, 40, 9, 0], [12, 15, 10, 20, 7]]), np.array([[2, 4, 50, 10, 0], [20, 20, 20, 20, 7]])
    accuracy = PairAccuracy(hits, totals)
    assert accuracy.worst_pair_tests == 2 and accuracy.barely_tested == 3
    ordered = sorted(h / n for h, n in zip(hits.ravel(), totals.ravel(), strict=True) if n)  # nine: position 0.8
    assert accuracy.tail == pytest.approx(0.2 * ordered[0] + 0.8 * ordered[1])
    assert PairAccuracy(np.zeros((1, 2), int), np.zeros((1, 2), int)).tail is None


def test_of_equally_bad_pairs_the_worst_has_most_test_samples():
    assert PairAccuracy(np.array([[0, 0], [0, 5]]), np.array([[2, 40], [0, 5]])).worst_pair_index == (0, 1)


@pytest.mark.parametrize(
    ("squares", "message"),
    [
        ([[1]], "squares must be between"),  # two samples have at least as many squares
        ([[5]], "squares must be between"),
        ([[2, 2]], r"squares has shape \(1, 2\)"),
        ([[2.5]], "squares is float64"),
    ],
)
def test_impossible_squares_are_refused(squares: list, message: str):
    with pytest.raises(ValueError, match=message):
        PairAccuracy(np.array([[1]]), np.array([[2]]), np.array(squares))


@pytest.mark.parametrize("group", [[0], [0.5, 1.0]])
def test_groups_that_are_no_numbers_of_samples_are_refused(group: list):
    with pytest.raises(ValueError, match="group is"):
        PairAccuracy.from_predictions([0, 0], [0, 0], [0, 0], num_domains=1, num_classes=1, group=group)


@pytest.mark.parametrize(
    ("options", "message"),
    [({"of": "best_pair"}, "unknown view 'best_pair'"), ({"confidence": 95}, "confidence is 95")],
)
def test_interval_refuses_what_it_does_not_know(options: dict, message: str):
    with pytest.raises(ValueError, match=message):
        PairAccuracy(np.array([[1]]), np.array([[2]])).interval(**options)


@st.composite
def grouped(draw: st.DrawFn) -> tuple[Predictions, list[int]]:
    p = draw(predictions())
    return p, [draw(st.integers(-3, 8)) for _ in p.samples]


def accuracy_of(p: Predictions, group: list[int] | None) -> PairAccuracy:
    columns = np.array(p.samples, dtype=np.int64).reshape(-1, 3).T
    sizes = {"num_domains": p.num_domains, "num_classes": p.num_classes}
    return PairAccuracy.from_predictions(*columns, **sizes, group=None if group is None else np.array(group, int))


@given(grouped())
def test_samples_in_groups_are_worth_as_many_as_kish_says(case: tuple[Predictions, list[int]]):
    p, group = case
    accuracy = accuracy_of(p, group)
    for d, c in np.ndindex(accuracy.totals.shape):
        members = [g for g, (_, y, domain) in zip(group, p.samples, strict=True) if (domain, y) == (d, c)]
        squares = sum(members.count(g) ** 2 for g in set(members))
        effective = len(members) ** 2 / squares if members else 0
        assert accuracy.independent[1][d, c] == pytest.approx(effective)
        assert accuracy.independent[0][d, c] == pytest.approx(
            0 if not members else effective * accuracy.hits[d, c] / len(members)
        )
        if members:
            own = wilson(accuracy.hits[d, c] / len(members) * effective, effective)
            assert accuracy.interval((d, c)) == pytest.approx(own)


@given(predictions(), st.randoms(use_true_random=False))
def test_groups_of_one_change_nothing(p: Predictions, random):
    alone = accuracy_of(p, random.sample(range(len(p.samples) + 5), len(p.samples)))
    assert alone.squares is None and alone.to_json() == p.accuracy().to_json()
    for of in (*VIEWS, 0, (0, 0)):
        assert alone.interval(of) == p.accuracy().interval(of)


@given(grouped())
def test_groups_change_no_accuracy_and_never_narrow_an_interval(case: tuple[Predictions, list[int]]):
    accuracy, plain = accuracy_of(*case), case[0].accuracy()
    assert {**accuracy.to_json(), "squares": None} == {**plain.to_json(), "squares": None}
    if accuracy.totals.any():
        for of in ("worst_domain", "worst_pair"):
            wide, narrow = accuracy.interval(of), plain.interval(of)
            assert 0 <= wide[0] <= narrow[0] + 1e-9 and narrow[1] <= wide[1] + 1e-9 <= 1 + 2e-9
        for of in ("average", "pair_average"):
            low, high = accuracy.interval(of)
            assert 0 <= low <= getattr(accuracy, of) + 1e-9 and getattr(accuracy, of) <= high + 1e-9 and high <= 1


def test_a_domain_has_the_groups_of_its_pairs():
    # Groups of 4 and 2 samples of the one class, of 3 of the other: 9² / (16 + 4 + 9).
    y, group = [0] * 6 + [1] * 3, [5] * 4 + [6] * 2 + [5] * 3
    accuracy = PairAccuracy.from_predictions([0] * 9, y, [0] * 9, num_domains=1, num_classes=2, group=group)
    effective = 9**2 / (4**2 + 2**2 + 3**2)
    assert accuracy.interval(0) == pytest.approx(wilson(6 / 9 * effective, effective))
    assert accuracy.interval("worst_domain") == pytest.approx(accuracy.interval(0))


@given(grouped(), st.integers(1, 4))
def test_pooled_folds_are_one_test_set(case: tuple[Predictions, list[int]], folds: int):
    p, group = case
    parts = []
    for fold in range(folds):
        rows = [i for i, g in enumerate(group) if g % folds == fold]
        samples = [p.samples[i] for i in rows]
        parts.append(accuracy_of(Predictions(p.num_domains, p.num_classes, samples), [group[i] for i in rows]))
    assert PairAccuracy.pooled(parts).to_json() == accuracy_of(p, group).to_json()


@given(grouped(), st.data())
def test_some_of_the_pairs(case: tuple[Predictions, list[int]], data: st.DataObject):
    p, group = case
    shape = p.num_domains, p.num_classes
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=shape[0] * shape[1], max_size=shape[0] * shape[1])))
    mask = mask.reshape(shape)
    rows = [i for i, (_, y, d) in enumerate(p.samples) if mask[d, y]]
    kept = Predictions(*shape, [p.samples[i] for i in rows])
    assert accuracy_of(p, group).only(mask).to_json() == accuracy_of(kept, [group[i] for i in rows]).to_json()


def draw_groups(
    generator: np.random.Generator, chance: float, correlation: float, sizes: np.ndarray, draws: int
) -> np.ndarray:
    """Hits (draws, P) of groups of these sizes (P, G); answers in one group have this correlation."""
    group = np.repeat(np.arange(sizes.size), sizes.ravel())
    shape = draws, len(group)
    of_group, own = generator.random((draws, sizes.size)) < chance, generator.random(shape) < chance
    right = np.where(generator.random(shape) < correlation**0.5, of_group[:, group], own)
    return np.add.reduceat(right, np.searchsorted(group, np.arange(0, sizes.size, sizes.shape[1])), axis=1)


@pytest.mark.parametrize("correlation", [1.0, 0.5])
@pytest.mark.parametrize("size", [(2, 2), (5, 5), (1, 5)])
@pytest.mark.parametrize(("pairs", "number"), [(1, 1), (1, 10), (12, 3), (12, 20), (100, 5)])
def test_intervals_cover_the_truth_of_groups(pairs: int, number: int, size: tuple[int, int], correlation: float):
    generator = np.random.default_rng(0)
    sizes = generator.integers(*size, size=(pairs, number), endpoint=True)
    domain, y = np.zeros(sizes.sum(), int), np.repeat(np.arange(pairs), sizes.sum(axis=1))
    squares = group_squares(y, domain, np.repeat(np.arange(sizes.size), sizes.ravel()), (1, pairs))[0]
    totals, weights, covered = sizes.sum(axis=1), np.full(pairs, 1 / pairs), []
    accuracies = (0.5, 0.7, 0.9, 0.95, 0.99)
    for chance in accuracies:
        hits = draw_groups(generator, chance, correlation, sizes, 800)
        for scale in (1, totals / squares):
            low, high = average_interval(hits * scale, totals * scale, weights)
            covered.append(np.mean((low <= chance) & (chance <= high)))
    naive, by_group = np.reshape(covered, (len(accuracies), 2)).T
    assert by_group.min() > 0.82 and by_group.mean() > 0.92
    if size == (5, 5):
        assert naive.mean() < 0.85
