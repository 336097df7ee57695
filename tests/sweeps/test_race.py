"""Races: ranking and accuracies against loops, the recommendation sentence by sentence, and a real small race."""

from dataclasses import replace
from functools import partial
from itertools import pairwise
from statistics import mean, stdev

import numpy as np
import pytest

from crosstail.data import load_source, protocols
from crosstail.metrics import Answered, Answers, Difference, PairAccuracy, compare_methods
from crosstail.metrics._methods import holm
from crosstail.reports.compare.page import blocks
from crosstail.reports.compare.race_page import board_table, groups
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.results import Results
from crosstail.reports.compare.significance import AGAIN
from crosstail.reports.document.model import Text
from crosstail.storage import read_json, write_json
from crosstail.sweeps.cost import MethodCost, cost
from crosstail.sweeps.drive import sweep
from crosstail.sweeps.halving import rounds, scores
from crosstail.sweeps.index import Judged, Summary
from crosstail.sweeps.launchers._launcher import Resources
from crosstail.sweeps.launchers.inline import Inline
from crosstail.sweeps.race import enter, entrants, leaderboard, outcome, two_winners
from crosstail.sweeps.race_result import Entrant, RaceResult, Standing
from crosstail.sweeps.recommendation import recommendation, winner
from crosstail.sweeps.store import Store
from crosstail.testing import save_separable
from crosstail.training.folder import RunFolder
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs
from crosstail.training.spec import RunSpec

CHEAP, DEAR = MethodCost(1.0, 1, False, 0), MethodCost(2.0, 1, False, 1)
DOMAIN = np.repeat([0, 1], [50, 30])
Y = np.concatenate([np.repeat([0, 1], [40, 10]), np.repeat([0, 1], [10, 20])])


def answers(*shares: float, seed: int = 0) -> np.ndarray:
    """Whether each sample is classified correctly, with these probabilities in pairs of 40, 10, 10 and 20 samples."""
    rng = np.random.default_rng(seed)
    return rng.random(len(Y)) < np.array(shares)[2 * DOMAIN + Y]


@pytest.mark.parametrize(("come", "winners"), [((0.9, 0.8), 1), ((0.7, 0.8), 2)])
def test_it_says_where_the_two_questions_have_two_winners(come, winners):
    found = [entrant("a", [0.6, 0.6], [answers(1, 1, 1, 1)] * 2), entrant("b", [0.5, 0.5], [answers(1, 1, 1, 1)] * 2)]
    results = {
        f"{name}-{seed}": Summary(1.0, {"pair_average": alike + seed / 10, "as_they_come": value}, {})
        for name, alike, value in zip("ab", (0.55, 0.45), come, strict=True)
        for seed in (0, 1)
    }
    notes = two_winners(found, results)
    assert len(notes) == winners - 1
    for note in notes:
        assert "a (60.0 %) if every pair is equally important, b (80.0 %) for samples as they come" in note
    assert not two_winners(found, {key: Summary(1.0, {"pair_average": 0.5}, {}) for key in results})


def said(correct: np.ndarray, group: np.ndarray | None = None) -> Answers:
    about = {"domains": ["p", "q"], "classes": ["a", "b"], "counts": np.ones((2, 2), int)}
    return Answers(**about, y=Y, domain=DOMAIN, predicted=np.where(correct, Y, -1), group=group)


def entrant(
    name: str,
    validation: list[float],
    correct: list[np.ndarray],
    cost: MethodCost = CHEAP,
    group: np.ndarray | None = None,
    validated: list[np.ndarray] | None = None,
) -> Entrant:
    judged = [Judged(value, value) for value in validation]
    by_seed = {"validation": dict(enumerate(judged))}
    by_seed["answers"] = {seed: said(right, group) for seed, right in enumerate(correct)}
    by_seed["validated"] = {seed: said(right) for seed, right in enumerate(validated or correct)}
    keys = {seed: [f"{name}-{seed}"] for seed in range(len(correct))}
    return Entrant(method=name, family="own", cost=cost, trial=1, hparams={}, runs=keys, seconds=1.0, **by_seed)


def of_pair(correct: np.ndarray, d: int, c: int) -> list[bool]:
    return [bool(right) for right, domain, y in zip(correct, DOMAIN, Y, strict=True) if (domain, y) == (d, c)]


def pair_average(correct: np.ndarray) -> float:
    return mean(mean(of_pair(correct, d, c)) for d in range(2) for c in range(2))


def worst_domain(correct: np.ndarray) -> float:
    return min(mean(mean(of_pair(correct, d, c)) for c in range(2)) for d in range(2))


def test_ranked_by_validation_and_ties_by_cost() -> None:
    right = answers(1, 1, 1, 1)
    found = [
        entrant("dear", [0.1, 0.2, 0.3], [right] * 3, DEAR),
        entrant("cheap", [0.2, 0.2, 0.2], [~right] * 3),
        entrant("worst", [0.1, 0.1, 0.1], [right] * 3),
        entrant("best", [0.3, 0.3, 0.3], [~right] * 3, DEAR),
        entrant("also", [0.2, 0.2, 0.2], [right] * 3),  # as in a report, which finds runs in another order
    ]
    board = leaderboard(found)
    assert [row.method for row in board] == ["best", "also", "cheap", "dear", "worst"]
    assert [row.validation for row in board] == [0.3, 0.2, 0.2, 0.2, 0.1]


def test_accuracies_are_means_over_seeds() -> None:
    correct = [answers(0.9, 0.5, 0.3, 0.7, seed=seed) for seed in range(3)]
    (row,) = leaderboard([entrant("one", [0.5, 0.6, 0.7], correct)])
    averages = [pair_average(right) for right in correct]
    assert row.test == pytest.approx(mean(averages))
    assert row.deviation == pytest.approx(stdev(averages))
    assert row.worst_domain == pytest.approx(mean(map(worst_domain, correct)))
    ends = PairAccuracy.mean_interval([said(right).value() for right in correct], "pair_average")
    assert (row.low, row.high) == ends and row.low < row.test < row.high
    assert row.lead is None and row.level


@pytest.mark.parametrize("seeds", [1, 3])
def test_the_lead_is_that_of_the_function_that_reports_use(seeds) -> None:
    first = [answers(0.9, 0.9, 0.9, 0.9, seed=seed) for seed in range(seeds)]
    other = [answers(0.7, 0.7, 0.7, 0.7, seed=seed + 7) for seed in range(2)]
    sides = {"other": other, "first": first}
    board = leaderboard([entrant(name, [0.1 + 0.1 * (name == "first")] * 2, side) for name, side in sides.items()])
    lead = board[1].lead
    seen = {name: [Answered(i, said(right)) for i, right in enumerate(side)] for name, side in sides.items()}
    assert lead == -compare_methods(seen, "first", "pair_average")["other"]
    assert lead.estimate == pytest.approx(mean(map(pair_average, first)) - mean(map(pair_average, other)))
    assert lead.estimate > 0.1 and lead.retrained == (seeds > 1)


def test_the_test_samples_of_one_group_count_together() -> None:
    first, other = answers(0.9, 0.9, 0.9, 0.9), answers(0.8, 0.8, 0.8, 0.8, seed=7)
    plain, grouped = (
        leaderboard([entrant("first", [0.2], [first], group=of), entrant("other", [0.1], [other], group=of)])
        for of in (None, np.arange(len(Y)) // 4)
    )
    assert [row.test for row in grouped] == [row.test for row in plain]
    for wide, narrow in zip(grouped, plain, strict=True):
        assert wide.low < narrow.low - 0.02 and wide.high > narrow.high


def test_a_method_is_behind_only_if_it_is_after_the_correction_for_their_number() -> None:
    first = answers(0.9, 0.9, 0.9, 0.9)
    others = [answers(0.75, 0.8, 0.85, 0.75, seed=seed) for seed in range(1, 6)]
    found = [entrant("first", [0.2], [first]), *(entrant(f"m{i}", [0.1], [right]) for i, right in enumerate(others))]
    _, *rows = leaderboard(found)
    p_values = [line.lead.p_value for line in rows]
    assert [line.lead.adjusted for line in rows] == holm(p_values).tolist()
    assert [line.level for line in rows] == [p >= 0.05 for p in holm(p_values)]
    assert any(line.level and line.lead.low > 0 for line in rows)  # alone, it would have been behind


def test_candidates_are_compared_on_validation_and_never_on_the_test_set() -> None:
    good, bad = answers(0.95, 0.95, 0.95, 0.95), answers(0.4, 0.4, 0.4, 0.4, seed=1)
    near = answers(0.9, 0.95, 0.95, 0.95, seed=2)
    found = [
        entrant("first", [0.95], [good], DEAR),
        entrant("near", [0.9], [bad], CHEAP, validated=[near]),
        entrant("far", [0.4], [good], MethodCost(0.0, 1, True, 0), validated=[bad]),
    ]
    board = leaderboard(found)
    assert {row.method: row.candidate for row in board} == {"first": True, "near": True, "far": False}
    assert {row.method: row.level for row in board} == {"first": True, "near": False, "far": True}
    assert winner(board).method == "near"
    unknown = leaderboard([replace(one, validated={0: None}) for one in found])  # nothing kept: nothing shown
    assert winner(unknown).method == "first"


def test_methods_that_are_right_on_the_same_samples_are_told_from_those_that_are_tied() -> None:
    right = [answers(0.8, 0.8, 0.8, 0.8, seed=seed) for seed in range(2)]
    other = [answers(0.8, 0.8, 0.8, 0.8, seed=seed) for seed in range(2, 4)]
    sides = {"first": right, "twin": right, "swapped": right[::-1], "other": other}
    board = leaderboard([entrant(name, [0.9 - 0.1 * i] * 2, side) for i, (name, side) in enumerate(sides.items())])
    assert {row.method: bool(row.lead and row.lead.same) for row in board} == {
        **dict.fromkeys(sides, False),
        "twin": True,
    }
    assert all(row.level for row in board)


def row(name: str, lead: tuple[float, float, float] | None = None, cost: MethodCost = DEAR, **own) -> Standing:
    adjusted = None if lead is None else 0.01 if lead[1] > 0 or lead[2] < 0 else 0.5
    difference = None if lead is None else Difference(*(end / 100 for end in lead), p_value=0.5, adjusted=adjusted)
    own = {"validation": 0.8, "test": 0.8, "low": 0.7, "high": 0.9, "worst_domain": 0.5, "deviation": None} | own
    others = {"family": "own", "seconds": 1.0, "trial": 0, "hparams": {}, "runs": {0: name}}
    return Standing(method=name, lead=difference, cost=cost, **own, **others)


WITHIN, BEYOND, ABOVE = (0.5, -0.5, 1.5), (3.0, 1.0, 5.0), (-3.0, -5.0, -1.0)
AHEAD = {
    WITHIN: "0.5 points ahead of {} (95 % interval -0.5 to +1.5, within the noise)",
    BEYOND: "3.0 points ahead of {} (95 % interval +1.0 to +5.0, beyond the noise)",
    ABOVE: "3.0 points behind {} (95 % interval -5.0 to -1.0, beyond the noise)",
}
TEST = "On the test set it has 80.0 % (95 % interval 70.0 to 90.0)"
CHEAPEST = (
    "it is the cheapest of the {} methods that 620 validation samples cannot separate, of which boda is best (90.0 %)"
)


@pytest.mark.parametrize(
    ("board", "said"),
    [
        (
            [row("boda"), row("coral", WITHIN), row("erm", BEYOND, CHEAP, candidate=False)],
            "Use boda: it is best on validation (90.0 %), and no method that is within its noise is cheaper. "
            f"{TEST}; it is {AHEAD[WITHIN].format('the second, coral')} and {AHEAD[BEYOND].format('erm')}.",
        ),
        (
            [row("boda"), row("erm", WITHIN, CHEAP), row("coral", BEYOND), row("focal", WITHIN, CHEAP)],
            f"Use erm: {CHEAPEST.format(4)}. {TEST}; boda is {AHEAD[WITHIN].format('it')}.",
        ),
        (
            [row("erm", cost=CHEAP), row("boda", BEYOND, candidate=False)],
            "Use erm: it is best on validation (90.0 %), by more than the noise. "
            f"{TEST}; it is {AHEAD[BEYOND].format('the second, boda')}.",
        ),
        # The test set favours the other one: that is reported, but not used to choose.
        (
            [row("boda"), row("coral", ABOVE, CHEAP, candidate=False), row("erm", WITHIN)],
            "Use boda: it is best on validation (90.0 %), and no method that is within its noise is cheaper. "
            f"{TEST}; it is {AHEAD[ABOVE].format('the second, coral')} and {AHEAD[WITHIN].format('erm')}.",
        ),
        (
            [row("boda"), row("coral", ABOVE, CHEAP), row("erm", WITHIN)],
            f"Use coral: {CHEAPEST.format(3)}. "
            f"{TEST}; boda is {AHEAD[ABOVE].format('it')} and {AHEAD[WITHIN].format('erm')}.",
        ),
        (
            [row("boda"), row("coral", (0.0, 0.0, 0.0))],
            "Use boda: it is best on validation (90.0 %), and no method that is within its noise is cheaper. "
            f"{TEST}; it is level with the second, coral (95 % interval +0.0 to +0.0, within the noise).",
        ),
    ],
)
def test_the_recommendation_begins_with_the_method_to_use(board: list[Standing], said: str) -> None:
    board = [replace(board[0], validation=0.9), *board[1:]]
    assert recommendation(board, 620) == said
    assert said.startswith(f"Use {winner(board).method}:")


def test_a_tie_on_validation_is_reported() -> None:
    board = [row("erm"), row("boda", WITHIN), row("coral", WITHIN), row("focal", WITHIN, validation=0.7)]
    assert "best on validation (80.0 %, shared with 2 others)" in recommendation(board, 9)
    assert "(80.0 %, shared with 1 other)" in recommendation([*board[:2], board[3]], 9)


def test_the_second_may_be_right_on_the_same_samples() -> None:
    twin = row("focal", (0.0, -1.0, 1.0))
    twin = replace(twin, lead=replace(twin.lead, same=True))
    assert "it is right on the same samples as the second, focal" in recommendation([row("erm"), twin], 9)


def test_the_only_method_that_finished_is_reported_as_such() -> None:
    assert "no other method finished" in recommendation([row("boda")], 1240)


def test_the_cost_of_a_method() -> None:
    found = {name: cost(name) for name in ("erm", "bsoftmax", "focal", "erm:retrain", "erm:ncm", "boda", "mldg")}
    order = ["erm", "bsoftmax", "focal", "boda", "erm:ncm", "erm:retrain", "mldg"]
    assert sorted(found, key=lambda name: found[name]) == order
    assert found["erm"] == found["bsoftmax"] == MethodCost(1, 1, False, 0)


@pytest.fixture
def shared(tmp_path) -> RunSpec:
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 9, 25]])
    small = {"algorithm": "erm", "width": 8, "steps": 6, "evaluations": 2, "batch_size": 8}
    return resolve(RunSpec(dataset=str(tmp_path / "v.npz"), **small))


def test_a_method_that_does_not_suit_the_data_is_left_out_with_the_reason(shared, tmp_path) -> None:
    save_separable(tmp_path / "v.npz", [[30, 8, 2]])
    dataset = load_inputs(shared).embedded()
    plan, left_out = enter(shared, ["erm", "coral", "focal"], dataset, trials=2, seeds=1)
    assert plan.methods == ("erm", "focal") and set(plan.drawn) == {"erm", "focal"}
    assert list(left_out) == ["coral"] and "domains" in left_out["coral"]
    with pytest.raises(ValueError, match=r"coral.*domains"):
        enter(shared, ["coral"], dataset, trials=2, seeds=1)


def test_mistakes_are_errors_and_not_left_out(shared) -> None:
    dataset = load_inputs(shared).embedded()
    with pytest.raises(ValueError, match=r"'corall'.*'coral'"):
        enter(shared, ["erm", "corall"], dataset, trials=2, seeds=1)
    for split in ("val", "test"):
        with pytest.raises(ValueError, match=f"'{split}'"):
            enter(shared, ["erm"], dataset.keep(dataset.split != split), trials=2, seeds=1)


BROKEN = '''
from crosstail.algorithms.erm import ERM

class Broken(ERM):
    """Breaks down with a high learning rate (Nobody, 2020)."""

    def losses(self, z, batch):
        if self.hparams.lr != 1e-3:
            raise RuntimeError("too fast")
        return super().losses(z, batch)
'''


def race(shared: RunSpec, path, methods: list[str], seeds: int = 2) -> tuple[RaceResult, Store]:
    store, dataset = Store(path), load_inputs(shared).embedded()
    plan, left_out = enter(shared, methods, dataset, trials=3, seeds=seeds)
    assert len(list(sweep(plan, store, Inline(store, Resources())))) <= len(methods) * plan.runs_per_method
    return outcome([plan], left_out, store, [dataset], store.failures()), store


def test_a_race_selects_on_validation_and_compares_the_predictions_of_the_chosen_models(shared, tmp_path) -> None:
    ended, store = race(shared, tmp_path / "race", ["erm", "focal", "crt", "erm:ncm"])
    assert ended.complete and not ended.failed and len(ended.leaderboard) == 4
    results = {path.name: RunFolder(path).result() for path in store.path.glob("runs/*")}
    (plan,) = store.plans()
    found, _ = entrants(plan, store, [load_inputs(shared).samples], {})
    for one in found:
        trials = [results[plan.runs(one.method, h)[0].key] for h in plan.drawn[one.method]]
        validation = [result.validation.pair_average for result in trials]
        assert one.trial == validation.index(max(validation))
        assert [results[key].spec.seed for (key,) in one.runs.values()] == [0, 1]
        for seed, (key,) in one.runs.items():
            assert one.answers[seed].correct.sum() == np.sum(results[key].test.hits)
            assert one.validation[seed].value == results[key].validation.pair_average
    for line in ended.leaderboard:
        averages = [results[key].test.pair_average for (key,) in line.runs.values()]
        assert line.test == pytest.approx(mean(averages))
    write_json(tmp_path / "race.json", ended)
    again = read_json(tmp_path / "race.json", RaceResult)
    assert again == ended
    assert again.recommendation == recommendation(ended.leaderboard, ended.validation_samples) and again.trials == 3


def test_a_report_of_the_runs_of_a_race_has_the_same_differences(shared, tmp_path) -> None:
    ended, store = race(shared, tmp_path / "race", ["erm", "focal", "erm:ncm"])
    first, *others = ended.leaderboard
    tests = Results(read_runs([store.path])).tests.set_index("method")
    assert set(tests.index) == {row.method for row in others} and set(tests["against"]) == {first.method}
    assert set(tests["about"]) == {AGAIN}
    for row in others:
        found = tests.loc[row.method]
        own = [-100 * row.lead.estimate, -100 * row.lead.high, -100 * row.lead.low, row.lead.p_value, row.lead.adjusted]
        assert found[["difference", "low", "high", "p", "adjusted"]].tolist() == pytest.approx(own, abs=1e-9)


def test_a_report_of_a_race_that_stops_methods_early_has_the_same_figures_to_the_digit(shared, tmp_path) -> None:
    save_separable(tmp_path / "v.npz", [[30, 28, 22], [20, 29, 25]], num_features=2, seed=3)
    methods, store = ["erm", "focal", "ldam", "mixup", "frozen:ncm", "frozen:blend"], Store(tmp_path / "race")
    dataset = load_inputs(shared).embedded()
    plan, _ = enter(shared, methods, dataset, trials=2, seeds=2)
    plans = []
    for part in rounds(plan, partial(scores, store), finalists=2):
        list(sweep(part.plan, store, Inline(store, Resources())))
        plans.append(part.plan)
    ended = outcome(plans, {}, store, [dataset], {})
    write_json(store.path / "race.json", ended)
    assert ended.stopped
    results = Results(read_runs([store.path]))
    assert {run.method for run in results.methods} == {row.method for row in ended.leaderboard}
    own = results.summary[(results.summary["kind"] == "metric") & (results.summary["metric"] == "pair average")]
    shown = own.set_index("method")[["mean", "low", "high"]].round(1).to_dict("index")
    board = board_table(ended.leaderboard).rename(columns={"test": "mean"}).set_index("method")
    assert shown == board[["mean", "low", "high"]].round(1).to_dict("index")
    tests, first = results.tests.set_index("method"), ended.leaderboard[0].method
    assert set(tests["against"]) == {first}
    leads = board.drop(first)[["lead", "lead_low", "lead_high"]]
    mirrored = -tests[["difference", "high", "low"]].set_axis(leads.columns, axis=1)
    assert leads.round(1).to_dict("index") == (mirrored.round(1) + 0.0).to_dict("index")
    page = " ".join(block.text for block in blocks(results) if isinstance(block, Text))
    found = dict.fromkeys(("first", "the same", "tied", "worse"), 0) | {n: len(g) for n, g in groups(ended.leaderboard)}
    assert found["tied"] and found["worse"]
    assert f"{found['worse']} significantly worse, {found['tied']} not significantly different" in page


def test_a_method_that_uses_the_domain_is_also_tested_with_the_domain_known(shared, tmp_path) -> None:
    ended, store = race(shared, tmp_path / "race", ["erm", "mtl"])
    rows = {row.method: row for row in ended.leaderboard}
    known = [RunFolder(store.path / "runs" / key).result().known.test for (key,) in rows["mtl"].runs.values()]
    assert rows["mtl"].known == pytest.approx(mean(accuracy.pair_average for accuracy in known))
    assert rows["erm"].known is None


def test_failed_runs_are_listed_with_the_last_line_of_their_error(shared, tmp_path) -> None:
    (tmp_path / "broken.py").write_text(BROKEN)
    name = str(tmp_path / "broken.py")
    ended, _ = race(shared, tmp_path / "race", ["erm", name], seeds=1)
    assert [(failed.method, failed.run) for failed in ended.failed] == [(name, "trial 1"), (name, "trial 2")]
    assert all(failed.error == "RuntimeError: too fast" for failed in ended.failed)
    assert ended.complete  # its defaults have finished
    (tmp_path / "broken.py").write_text(BROKEN.replace("!= 1e-3", "> 0"))
    ended, _ = race(replace(shared, steps=5), tmp_path / "other", ["erm", name], seeds=1)
    assert [line.method for line in ended.leaderboard] == ["erm"] and len(ended.failed) == 3 and not ended.complete


def test_the_worse_half_stops_after_each_trial_but_erm_and_the_default_never_do(shared, tmp_path) -> None:
    store, dataset = Store(tmp_path / "race"), load_inputs(shared).embedded()
    (tmp_path / "broken.py").write_text(BROKEN.replace("!= 1e-3", "> 0"))
    methods = ["erm", "frozen:blend", "focal", "mixup", "ldam", "resample", str(tmp_path / "broken.py")]
    plan, _ = enter(replace(shared, steps=2), methods, dataset, trials=3, seeds=2)
    plans = []
    for part in rounds(plan, partial(scores, store), finalists=2):
        list(sweep(part.plan, store, Inline(store, Resources())))
        plans.append(part.plan)
    assert plans[0].methods == ("frozen:blend",) and (plans.pop(0).trials, plan.seeds) == (1, 2)  # it takes no time
    assert [(part.trials, part.seeds) for part in plans] == [(1, 1), (2, 1), (3, 2)]
    results, left = store.results(), methods[2:]
    for part, following in pairwise(plans):
        best = {}
        for method in left:
            keys = [part.runs(method, hparams)[0].key for hparams in plan.drawn[method][: part.trials]]
            best[method] = max((results[key].judged("pair_average").score for key in keys if key in results), default=0)
        keep = max(2, (len(left) + 1) // 2)
        worst = sorted(best.values(), reverse=True)[keep - 1]
        assert set(following.methods) >= {method for method in left if best[method] > worst} | set(methods[:2])
        left = [method for method in following.methods if method not in methods[:2]]
        assert all(best[method] >= worst for method in left) and len(left) == keep
    ended = outcome(plans, {}, store, [dataset], store.failures())
    assert {row.method for row in ended.leaderboard} == set(plans[-1].methods) and ended.complete
    assert {one.method for one in ended.stopped} == set(methods[2:6]) - set(left)
    assert [failed.method for failed in ended.failed] == methods[6:]
    *_, last = rounds(plan, partial(scores, store), finalists=5)
    assert last.plan == plan and not last.later


def test_predictions_that_were_removed_are_named(shared, tmp_path) -> None:
    ended, store = race(shared, tmp_path / "race", ["erm"], seeds=1)
    (store.path / "runs" / ended.leaderboard[0].runs[0][0] / "predictions.pt").unlink()
    with pytest.raises(ValueError, match=r"predictions\.pt"):
        outcome(store.plans(), {}, store, [load_inputs(shared).samples], {})


def test_more_trials_of_an_earlier_race_give_no_method_an_advantage(shared, tmp_path) -> None:
    many, store = race(shared, tmp_path / "race", ["erm"])
    dataset = load_inputs(shared).embedded()
    plan, _ = enter(shared, ["erm"], dataset, trials=1, seeds=2)
    list(sweep(plan, store, Inline(store, Resources())))
    few = outcome([plan], {}, store, [dataset], store.failures())
    assert few.leaderboard[0].trial == 0 and few.leaderboard[0].validation <= many.leaderboard[0].validation


def test_a_race_over_folds_compares_methods_on_every_sample_once(shared, tmp_path) -> None:
    shared = replace(shared, folds=3)
    source = load_source(shared)
    splits = [load_inputs(part, source).samples for part in protocols.parts(shared, source)]
    store = Store(tmp_path / "race")
    plan, _ = enter(shared, ["erm", "focal"], splits[0], trials=2, seeds=2)
    list(sweep(plan, store, Inline(store, Resources())))
    ended = outcome([plan], {}, store, splits, {})
    assert ended.complete and ended.samples == len(source) and ended.folds == 3
    for line in ended.leaderboard:
        by_seed = []
        for keys in line.runs.values():
            runs = [RunFolder(store.path / "runs" / key).result() for key in keys]
            assert [run.spec.fold for run in runs] == [1, 2, 3]
            hits, totals = (np.sum([getattr(run.test, name) for run in runs], axis=0) for name in ("hits", "totals"))
            by_seed.append(float(np.mean((hits / totals)[totals > 0])))
        assert line.test == pytest.approx(mean(by_seed)) and len(by_seed) == 2
