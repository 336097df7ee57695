import json
import re
import time
from pathlib import Path

import numpy as np
import pytest

from crosstail import second_stages
from crosstail.algorithms import canonical
from crosstail.algorithms.erm import ERM
from crosstail.reports.wording import duration
from crosstail.sweeps import worker
from crosstail.sweeps.forecast import Forecast
from crosstail.sweeps.launchers import _launcher
from crosstail.sweeps.launchers.inline import Inline
from crosstail.sweeps.outlook import Outlook
from crosstail.testing import save_separable

LAUNCHER = _launcher.launcher
begin, outlook = Forecast.begin, Forecast.outlook
SHORT = "--steps 4 --batch-size 8 --out race"


@pytest.fixture
def inline(monkeypatch):
    """Run in this process: starting others takes seconds."""
    worker._load.cache_clear()  # v.npz was another file in another test
    worker._source.cache_clear()
    monkeypatch.setattr(_launcher, "launcher", lambda name, store, resources: Inline(store, resources))


def test_all_algorithms_race_by_default_and_those_that_do_not_suit_are_left_out(crosstail, inline, tmp_path):
    save_separable(tmp_path / "v.npz", [[30, 8, 2]])
    ended = crosstail(f"race v.npz --trials 1 --seeds 1 {SHORT}")
    assert ended.code == 0
    assert max(map(len, ended.out.partition("Next: ")[0].splitlines())) <= 80
    lines = ended.out[: ended.out.index("left out")].splitlines()
    raced = {line.split()[0] for line in lines if re.match(r"[\w:]+ +\d+\.\d ", line)}
    left_out = set(re.findall(r"^left out: (\w+) compares domains", ended.out, re.MULTILINE))
    every = {canonical(entry["name"]) for entry in json.loads(crosstail("list algorithms --json").out)}
    every |= {f"frozen:{stage.name}" for stage in second_stages.catalogue() if stage.kind == "fitted"}
    assert raced | left_out == every and not raced & left_out
    assert {"erm", "boda", "focal"} <= raced and {"coral", "dann"} <= left_out
    assert "Use " in ended.out and "Expect the accuracy on test." in ended.out
    page = (tmp_path / "race" / "report.html").read_text(encoding="utf-8")
    groups = re.findall(r"(First|\d+ (?:tied|the same|worse)): ([^<]+)<", page)
    assert "Left out</h2>" in page and {name for _, names in groups for name in names.split(", ")} == raced
    assert all(number.split()[0] == str(len(names.split(", "))) for number, names in groups if number != "First")


def test_the_same_command_resumes_and_gives_the_same_answer(crosstail, inline, vectors, tmp_path):
    words = f"race {vectors} --algorithm erm --algorithm boda:retrain --trials 2 --seeds 2 --json {SHORT}"
    first = crosstail(words)
    assert first.code == 0
    answer = json.loads(first.out)
    assert {row["method"] for row in answer["leaderboard"]} == {"erm", "boda:retrain"}
    assert all(set(row["runs"]) == {"0", "1"} for row in answer["leaderboard"])
    runs = sorted((tmp_path / "race" / "runs").iterdir())
    assert len(runs) == 2 * (2 + 1)
    before = {run: (run / "result.json").stat().st_mtime_ns for run in runs}
    assert json.loads(crosstail(words).out) == answer
    assert {run: (run / "result.json").stat().st_mtime_ns for run in runs} == before
    assert answer["samples"] == 48 and answer["tune"] == "all"
    # The selected hyperparameters and models are ready to use.
    best = answer["leaderboard"][0]
    assert json.loads((tmp_path / "race" / "selected.json").read_text())[best["method"]] == best["hparams"]
    assert (tmp_path / "race" / "best").resolve().name in {row["runs"]["0"][0] for row in answer["leaderboard"]}
    crosstail(f"predict race/best {vectors}").ok()


@pytest.mark.parametrize(
    ("methods", "verb"),
    [("erm focal", "fit"), ("frozen:blend frozen:pooled", "predict"), ("frozen:blend erm", "predict")],
)
def test_the_best_of_a_race_is_one_method_with_all_that_fit_leaves(crosstail, inline, vectors, methods, verb):
    words = "".join(f" --algorithm {method}" for method in methods.split())
    ended = crosstail(f"race {vectors}{words} --trials 2 --seeds 1 {SHORT}")
    said, answer = " ".join(ended.out.split()), json.loads(Path("race/race.json").read_text())
    assert ended.code == 0 and f"Use {answer['use']}: " in said
    spec = json.loads(Path("race/best/spec.json").read_text())
    assert answer["use"] in (spec["algorithm"], f"{spec['algorithm']}:{spec['second_stage']}")
    command = ended.out.partition("Next: crosstail ")[2].strip()
    assert command.split()[0] == verb and ("--hparams" in command) == (verb == "fit")
    crosstail(command + (" --steps 4" if verb == "fit" else "")).ok()
    page = Path("race/report.html").read_text(encoding="utf-8")
    assert ("for longer, with the chosen hyperparameters" in page) == (verb == "fit")
    # The same files as of the run that `fit` trains.
    options = f"--algorithm {answer['use']} --steps 4 --batch-size 8 --evaluations 3 --out alone"
    crosstail(f"fit {vectors} {options}").ok()
    files = {file.name for file in Path("alone").iterdir()}
    assert files == {file.name for file in Path("race/best/").iterdir()} and "model_card.md" in files


def test_the_report_of_a_race_names_its_winner(crosstail, inline, vectors, tmp_path):
    ended = crosstail(f"race {vectors} --algorithm erm --algorithm focal --trials 1 --seeds 1 --json {SHORT}")
    recommended = json.loads(ended.out)["recommendation"]
    done = crosstail("report race --page-only")
    assert done.code == 0 and recommended in done.out
    assert recommended in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


def test_a_race_over_folds_is_on_every_sample_and_recommends_a_refit(crosstail, inline, vectors):
    ended = crosstail(f"race {vectors} --algorithm erm --trials 1 --seeds 1 --folds 3 {SHORT}")
    command = ended.out.partition("Next: ")[2]
    assert ended.code == 0 and "--folds 3" in command and "--refit" in command
    assert not Path("race/best").exists()  # there are three models
    with np.load(vectors) as arrays:
        assert json.loads(Path("race/race.json").read_text())["samples"] == len(arrays["y"])
    assert command.strip() in Path("race/report.html").read_text(encoding="utf-8")
    crosstail(f"{command.strip().removeprefix('crosstail ')} --steps 4").ok()


@pytest.mark.slow
def test_workers_of_their_own_give_the_same_answer(crosstail, inline, vectors, monkeypatch):
    words = f"race {vectors} --algorithm erm --algorithm focal --trials 2 --seeds 1 --steps 4 --batch-size 8 --json"
    alone = crosstail(f"{words} --out alone")
    monkeypatch.setattr(_launcher, "launcher", LAUNCHER)
    local = crosstail(f"{words} --out local --workers 2")
    assert local.code == 0
    boards = [json.loads(ended.out)["leaderboard"] for ended in (alone, local)]
    assert [{**row, "seconds": 0} for row in boards[0]] == [{**row, "seconds": 0} for row in boards[1]]


def test_images_are_embedded_by_the_pretrained_backbone(crosstail, inline, tmp_path):
    rng = np.random.default_rng(0)
    x = rng.integers(0, 255, (24, 32, 32, 3), dtype=np.uint8)
    split = np.repeat(["train", "val", "test"], [16, 4, 4])
    np.savez(tmp_path / "images.npz", x=x, y=np.arange(24) % 2, domain=np.arange(24) // 2 % 2, split=split)
    ended = crosstail(f"race images.npz --algorithm erm --trials 1 --seeds 1 --json {SHORT}")
    assert ended.code == 0
    answer = json.loads(ended.out)
    assert answer["tune"] == "none" and answer["backbone"] == "efficientnet_lite0"
    assert "no other method finished" in answer["recommendation"]


COSTLY = '''
import time
from crosstail.algorithms.erm import ERM

class Costly{n}(ERM):
    """Takes a known time for a step (Nobody, 2020)."""

    def update(self, *given):
        time.passed[0] += 0.0{n}
        return super().update(*given)
'''


@pytest.fixture
def clock(monkeypatch):
    """A clock that only steps of training advance."""
    passed = [0.0]
    monkeypatch.setattr(time, "passed", passed, raising=False)
    monkeypatch.setattr(time, "perf_counter", lambda: passed[0])
    steps = ERM.update
    monkeypatch.setattr(ERM, "update", lambda *given: passed.__setitem__(0, passed[0] + 0.01) or steps(*given))
    return passed


def seconds_in(text):
    value, unit = re.search(r"takes about ([\d.e+]+) (s|min)", text).groups()
    return float(value) * {"s": 1, "min": 60}[unit]


def test_a_race_says_at_once_how_long_all_of_it_takes(crosstail, inline, vectors, tmp_path, clock, monkeypatch):
    methods = "--algorithm erm --algorithm frozen:ncm"
    for n in range(1, 8):  # in one round after another, those that get further cost more or less than the others
        (tmp_path / f"costly{n}.py").write_text(COSTLY.format(n=n))
        methods += f" --algorithm ./costly{n}.py"
    states, began = [], []
    monkeypatch.setattr(Forecast, "begin", lambda self, at, last: began.append(clock[0]) or begin(self, at, last))
    monkeypatch.setattr(Forecast, "outlook", lambda *given: states.append(outlook(*given)) or states[-1])
    ended = crosstail(f"race {vectors} {methods} --trials 4 --seeds 2 --finalists 2 --steps 40 --out race")
    assert ended.code == 0
    real, said = clock[0] - began[0], seconds_in(ended.err)
    assert real / 1.5 < said < 1.5 * real
    assert said == pytest.approx(states[0].left, rel=0.1) and states[-1].left == 0
    assert not (tmp_path / "race" / "forecast.json").exists()  # which is for `status`
    # The same without a terminal: the first line is there before anything is trained.
    assert ended.err.splitlines()[0].startswith("The race takes about")
    assert "Of the methods that train nothing, frozen:ncm is best on validation" in ended.err


def test_a_quick_race_ends_after_what_takes_seconds_and_the_whole_goes_on_from_there(crosstail, inline, vectors):
    methods = "--algorithm erm --algorithm frozen:ncm --algorithm frozen:blend --trials 2 --seeds 2"
    quick = crosstail(f"race {vectors} {methods} --quick --json {SHORT}")
    assert quick.code == 0
    answer = json.loads(quick.out)
    assert {row["method"] for row in answer["leaderboard"]} == {"frozen:ncm", "frozen:blend"} and not answer["stopped"]
    assert "Training the 1 other method takes about" in " ".join(quick.err.split())
    before = set(Path("race/runs").iterdir())
    whole = json.loads(crosstail(f"race {vectors} {methods} --json {SHORT}").out)
    own = {
        key for row in whole["leaderboard"] if row["method"] != "erm" for keys in row["runs"].values() for key in keys
    }
    assert len(whole["leaderboard"]) == 3 and {path.name for path in before} == own
    ended = crosstail(f"race {vectors} --algorithm erm --quick {SHORT}")
    assert ended.code == 2 and "add frozen:blend" in " ".join(ended.err.split())


def test_status_has_the_time_that_all_rounds_of_a_race_take(crosstail, inline, vectors, monkeypatch):
    def stop(self, job, outcome):
        end(self, job, outcome)
        if self.round.name == "round 1 of 2" and len(list(Path("race/runs").iterdir())) > 1:
            self.outlook().write(Path("race"))
            raise KeyboardInterrupt

    end = Forecast.end
    monkeypatch.setattr(Forecast, "end", stop)
    methods = "--algorithm erm --algorithm focal --algorithm ldam --algorithm mixup --trials 2 --finalists 1"
    assert crosstail(f"race {vectors} {methods} {SHORT}").code
    told = Outlook.of(Path("race"))
    said = crosstail("status race").out
    assert told.round == "round 1 of 2" and duration(told.left) in said.splitlines()[-2]
    assert f"all that remains of it takes about {duration(told.left)}" in " ".join(said.split())
    monkeypatch.setattr(Forecast, "end", end)
    crosstail(f"race {vectors} {methods} {SHORT}").ok()
    assert "The race is in" not in crosstail("status race").out


BROKEN = '''
from crosstail.algorithms.erm import ERM

class Broken(ERM):
    """Does not work (Nobody, 2020)."""

    def losses(self, z, batch):
        raise RuntimeError("<b>no</b> [/red]")
'''


def test_runs_that_fail_are_listed_and_the_others_race_on(crosstail, inline, vectors, tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    ended = crosstail(f"race {vectors} --algorithm erm --algorithm ./broken.py --trials 2 --seeds 1 {SHORT}")
    assert ended.code == 1
    assert "failed: ./broken.py, trial 1: RuntimeError: <b>no</b> [/red]" in ended.out
    assert (
        "Use erm: it is best on validation" in " ".join(ended.out.split()) or "erm is best on validation" in ended.out
    )
    page = (tmp_path / "race" / "report.html").read_text(encoding="utf-8")
    assert "RuntimeError: &lt;b&gt;no&lt;/b&gt; [/red]" in page and "<b>no" not in page


def test_a_phase_that_the_race_is_too_short_for_is_named(crosstail, inline, vectors, tmp_path):
    ended = crosstail(
        f"race {vectors} --algorithm erm --algorithm irm --algorithm boda@reference:retrain --trials 2 --seeds 1 "
        f"--finalists 1 {SHORT}"
    )
    said = " ".join(ended.out.split())
    page = (tmp_path / "race" / "report.html").read_text(encoding="utf-8")
    assert ended.code == 0 and "1 method stopped early, on validation." in said and "note: erm" not in said
    for method, hparam in (("irm", "anneal"), ("boda@reference:retrain", "warmup")):
        note = rf"{method}: {hparam} is \d+ and the run has 4 steps, so the phase after it is never reached"
        assert re.search(f"note: {note}", said) and re.search(note, page)


def test_a_race_that_no_method_finishes_says_why(crosstail, inline, vectors, tmp_path):
    (tmp_path / "broken.py").write_text(BROKEN)
    ended = crosstail(f"race {vectors} --algorithm ./broken.py --trials 1 --seeds 1 {SHORT}")
    assert ended.code == 1 and "failed: ./broken.py, trial 0: RuntimeError" in ended.out


@pytest.mark.parametrize("also", ["", "race.json"])
def test_a_race_does_not_replace_the_page_of_a_run(crosstail, vectors, tmp_path, also):
    crosstail("fit v.npz --algorithm erm --steps 4 --batch-size 8 --evaluations 1 --out race").ok()
    if also:
        (tmp_path / "race" / also).touch()
    before = {file: file.read_bytes() for file in (tmp_path / "race").rglob("*") if file.is_file()}
    ended = crosstail(f"race v.npz --algorithm erm --trials 1 --seeds 1 {SHORT}")
    assert ended.code == 2 and "report.html" in ended.err and "--out" in ended.err
    assert {file: file.read_bytes() for file in (tmp_path / "race").rglob("*") if file.is_file()} == before


def test_mistakes_are_reported_before_anything_runs(crosstail, vectors, tmp_path, refused):
    assert "did you mean 'boda'?" in refused(f"race {vectors} --algorithm bodda {SHORT}")
    assert not (tmp_path / "race").exists()
    assert crosstail(f"race {vectors} --trials 0 {SHORT}").code == 2
