"""The pages on all methods and on one race, from real small races: they say what a loop over the boards finds."""

import runpy
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
import pytest

from crosstail.storage import write_json
from crosstail.sweeps.drive import sweep
from crosstail.sweeps.halving import rounds, scores
from crosstail.sweeps.launchers._launcher import Resources
from crosstail.sweeps.launchers.inline import Inline
from crosstail.sweeps.race import enter, outcome
from crosstail.sweeps.race_result import FailedRun
from crosstail.sweeps.store import Store
from crosstail.testing import save_separable
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs
from crosstail.training.spec import RunSpec

STUDIES = Path(__file__).parents[2] / "studies"
SCRIPT = runpy.run_path(str(STUDIES / "all_methods.py"))
METHODS = ["erm", "boda", "erm:ncm", "frozen:blend"]
BUDGETS = {"default": (1, 1000), "halving": (2, 1), "full": (2, 1000)}  # trials and finalists
TABLES = {"first": [[30, 8, 2], [0, 9, 25]], "second": [[20, 20, 4], [4, 9, 20]], "third": [[9, 30, 9], [30, 9, 9]]}


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Folders of races on three sets, the search on the first two, as `race` of the script leaves them."""
    path, found = tmp_path_factory.mktemp("races"), {}
    for seed, (name, counts) in enumerate(TABLES.items()):
        save_separable(path / f"{name}.npz", counts, num_features=2, seed=seed)
        size = {"algorithm": "erm", "width": 8, "steps": 4, "evaluations": 1, "batch_size": 8}
        shared = RunSpec(dataset=str(path / f"{name}.npz"), **size)
        dataset, store = load_inputs(resolve(shared)).embedded(), Store(path / name)
        for kind, (trials, finalists) in BUDGETS.items():
            if name == "third" and kind != "default":
                continue
            plan, _ = enter(shared, METHODS, dataset, trials=trials, seeds=2)
            plans = []
            for part in rounds(plan, partial(scores, store), finalists):
                list(sweep(part.plan, store, Inline(store, Resources())))
                plans.append(part.plan)
            ended = outcome(plans, {}, store, [dataset], store.failures())
            write_json(store.path / f"{kind}.json", ended)
        found[name] = store.path
    return found


@pytest.fixture
def races(places):
    return SCRIPT["read_races"](places)


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("| ").split("|")]


def row(lines: list[str], name: str) -> list[str]:
    """The only row of a table that begins with a name."""
    (found,) = [cells(line) for line in lines if line.startswith(f"| {name} |")]
    return found


def test_the_page_has_the_boards_of_all_sets(places, races):
    summary = SCRIPT["summaries"](places, races)
    text = SCRIPT["page"](summary, races)
    lines = text.splitlines()
    averages = {}
    for name, kinds in races.items():
        board = kinds["default"].leaderboard
        averages[name] = {one.method: 100 * one.test for one in board}
        found = row(lines[: lines.index("## Gains over all sets")], name)
        within = f"{sum(one.level for one in board[1:])} of {len(METHODS) - 1}"
        assert found[2:5] == [f"`{board[0].method}`", f"{averages[name][board[0].method]:.1f}", within]
        assert found[5].endswith(f"{max(averages[name].values()):.1f}")
        assert found[6].startswith(f"{averages[name]['erm']:.1f} (rank ")
    for method in METHODS:  # the numbers of default hyperparameters, although two sets have others too
        shown = row(lines, f"`{method}`")[3:]
        assert [cell.split()[0] for cell in shown] == [f"{averages[name][method]:.1f}" for name in TABLES]
    gains = {m: sum(own[m] - own["erm"] for own in averages.values()) / len(averages) for m in METHODS}
    shown = [cells(line)[:2] for line in lines[lines.index("## All methods") + 4 :][: len(METHODS)]]
    assert dict(shown) == {f"`{m}`": f"{gain:+.1f}" for m, gain in gains.items()}
    assert [float(gain) for _, gain in shown] == sorted((float(gain) for _, gain in shown), reverse=True)
    assert "Gain over erm" in text


def test_the_paragraph_names_the_first_of_every_set_and_where_erm_is_behind(places, races):
    table = SCRIPT["effects"](SCRIPT["summaries"](places, races))
    order = table.numbers.assign(family=[SCRIPT["_family"](method) for method in table.numbers["method"]])
    boards = {"first": ["boda", "erm"], "second": ["boda", "erm"], "third": ["erm", "boda"]}
    for name, methods in boards.items():
        rows = {one.method: one for one in races[name]["default"].leaderboard}
        lead = next(one.lead for one in rows.values() if one.lead)
        behind = replace(lead, estimate=0.2, adjusted=0.001 if name == "first" else 0.5)
        board = [replace(rows[methods[0]], lead=None), replace(rows[methods[1]], lead=behind)]
        races[name]["default"] = msgspec.structs.replace(races[name]["default"], leaderboard=board)
    said = SCRIPT["winners"](order, races)
    assert "No method wins everywhere: best on validation are `boda` on first and second and `erm` on third." in said
    assert "`erm` is within noise of the best on 2 of 3 sets and behind it on first." in said
    assert f"of {len(METHODS)}, `erm` is number {list(order['method']).index('erm') + 1} and `boda`" in said
    assert f"The {len(METHODS)} best by family: ours 2" in said


def test_the_first_of_halving_is_looked_up_in_the_full_race(races):
    lines = SCRIPT["halving"](races)
    assert "tied group on all of them." in lines[2]  # the first is the same in both races
    assert not any(line.startswith("| third") for line in lines)
    for name in ("first", "second"):
        short, full = races[name]["halving"], races[name]["full"]
        assert short.stopped and not full.stopped and len(full.leaderboard) == len(METHODS)
        (own,) = [one for one in full.leaderboard if one.method == short.leaderboard[0].method]
        found = row(lines, name)
        assert found[3:5] == [f"`{own.method}`", f"`{full.leaderboard[0].method}`"]
        assert found[5] == str(full.leaderboard.index(own) + 1) and found[7] == ("yes" if own.level else "no")
        assert found[8] == str(1 + sum(one.level for one in full.leaderboard[1:]))


def test_the_number_of_runs_is_that_of_the_folder(places, races):
    """Both seeds of the defaults are in it too, which the full race needs only where the defaults are best."""
    full, board = SCRIPT["runs"](races["first"]["full"]), races["first"]["full"].leaderboard
    assert len(list(places["first"].glob("runs/*"))) == full + sum(one.trial != 0 for one in board)
    assert SCRIPT["runs"](races["first"]["halving"]) < full


def test_a_first_that_is_behind_in_the_full_race_is_said_to_be(races):
    kinds = races["first"]
    method = kinds["halving"].leaderboard[0].method
    ahead, *others = [one for one in kinds["full"].leaderboard if one.method != method]
    lead = others[0].lead or kinds["full"].leaderboard[1].lead
    behind = replace(others[0], method=method, lead=replace(lead, estimate=0.2, adjusted=0.001))
    full = msgspec.structs.replace(kinds["full"], leaderboard=[replace(ahead, lead=None), behind])
    changed = {"first": {**kinds, "full": full}, "second": races["second"]}
    text = "\n".join(SCRIPT["halving"](changed))
    assert "tied group on second, and not on first." in text and row(text.splitlines(), "first")[7] == "no"


@pytest.mark.parametrize("field", ["trials", "seeds", "steps"])
def test_races_with_other_budgets_are_not_compared(races, field):
    other = msgspec.structs.replace(races["first"]["full"], **{field: 9})
    with pytest.raises(ValueError, match="first: the two races differ"):
        SCRIPT["halving"]({"first": {**races["first"], "full": other}})


def test_a_method_that_is_not_ranked_has_its_reason(places, races):
    table = SCRIPT["effects"](SCRIPT["summaries"](places, races))
    default = races["second"]["default"]
    failed = [FailedRun("sam", "trial 0", "diverged")]
    races["second"]["default"] = msgspec.structs.replace(default, left_out={"coral": "one domain"}, failed=failed)
    said = SCRIPT["left_out"](table.numbers, races)
    assert "Not ranked: `coral`; on second, one domain." in said
    assert "Not ranked: `sam`; on second, diverged." in said
    assert "Not ranked: `irm`; its race is not finished." in said and not any("`erm`" in line for line in said)


def test_all_methods_are_raced_once():
    found = SCRIPT["methods"]()
    assert len(found) == len(set(found)) and {"erm:retrain", "frozen:blend", "erm:plain", "ndcl"} <= set(found)
    assert not {"crt", "frozen"} & set(found)


def test_the_page_of_a_race_has_its_board_and_a_chart_if_a_method_is_behind(races, tmp_path):
    written = runpy.run_path(str(STUDIES / "race_page.py"))["page"]
    race = races["first"]["halving"]
    lead = next(one.lead for one in race.leaderboard if one.lead)
    for adjusted, drawn in ((1.0, False), (0.001, True)):
        others = [replace(one, lead=replace(lead, estimate=0.2, adjusted=adjusted)) for one in race.leaderboard[1:]]
        changed = msgspec.structs.replace(race, leaderboard=[race.leaderboard[0], *others], left_out={"dann": "why"})
        text = written(changed, "first", "crosstail race NAME/", "a minute", tmp_path / "first.png")
        assert f"{len(race.stopped)} methods stopped early" in text and "Left out: why" in text
        assert f"**{0 if drawn else len(others)} tied with" in text
        assert ("](../images/first.png)" in text) == (tmp_path / "first.png").exists() == drawn
        for one in changed.leaderboard:
            assert f"| `{one.method}` | {100 * one.validation:.1f} | {100 * one.test:.1f} |" in text
