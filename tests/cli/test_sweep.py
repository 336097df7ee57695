"""crosstail sweep, status and select: output, files, and error messages."""

import io
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from rich.text import Text

from crosstail.cli._progress import sweep_progress
from crosstail.cli.status import status as status_command
from crosstail.sweeps import drive
from crosstail.sweeps.plan import make
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome
from crosstail.training.resolve import resolve
from crosstail.training.spec import RunSpec, split_method

SHORT = "--width 8 --steps 6 --batch-size 4 --evaluations 2 --trials 2 --seeds 2 --launcher inline"
WORDS = f"sweep v.npz --algorithm erm --algorithm boda:retrain --out s {SHORT}"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a sweep, done once; tests take a copy."""
    return tmp_path_factory.mktemp("finished") / "s"


@pytest.fixture
def swept(crosstail, vectors, finished):
    """A finished sweep in the folder of the test."""
    if not finished.exists():
        crosstail(WORDS).ok()
        shutil.copytree("s", finished)
    else:
        shutil.copytree(finished, "s")
    return Path("s")


def test_lines_while_it_runs_and_a_table_at_the_end(crosstail, vectors):
    done = crosstail(WORDS)
    assert done.code == 0
    assert done.err.splitlines() == [
        "1/6 erm, trial 0: done",
        "2/6 erm, trial 1: done",
        "3/6 boda:retrain, trial 0: done",
        "4/6 boda:retrain, trial 1: done",
        "5/6 erm, seed 1: done",
        "6/6 boda:retrain, seed 1: done",
    ]
    lines = done.out.splitlines()
    assert max(map(len, lines)) <= 80
    assert "s/selected.json" in lines[-2] and lines[-1] == "Next: crosstail report s --out report"
    (row,) = [line.split() for line in lines if line.startswith("boda:retrain")]
    assert row[0] == "boda:retrain" and row[-1] == "2" and row.count("±") == 3
    again = crosstail(WORDS)
    assert again == (0, done.out, "")


def test_json_has_the_accuracies(crosstail, swept):
    done = crosstail(f"{WORDS} --json")
    erm, boda = json.loads(done.out)
    assert (erm["method"], boda["method"]) == ("erm", "boda:retrain")
    results = [json.loads(file.read_text()) for file in (swept / "runs").glob("*/result.json")]
    for row in (erm, boda):
        algorithm, stage = split_method(row["method"])
        words = {"algorithm": algorithm, "second_stage": stage, "hparams": row["hparams"]}
        runs = [result["test"] for result in results if words.items() <= result["spec"].items()]
        assert len(runs) == row["seeds"] == row["planned"] == 2
        assert row["accuracy"]["average"][0] == pytest.approx(sum(test["average"] for test in runs) / 2)


def test_dg_searches_with_every_seed_and_selects_for_every_unseen_domain(crosstail, vectors):
    done = crosstail(f"sweep v.npz --algorithm erm --protocol dg --out s {SHORT}")
    assert done.code == 0 and len(done.err.splitlines()) == 8  # 2 trials, 2 seeds, 2 unseen domains
    lines = done.out.splitlines()
    (header,) = [line.split() for line in lines if line.startswith("method")]
    assert header == ["method", "val", "accuracy", "class", "mean", "0", "1", "seeds"]
    (row,) = json.loads(crosstail(f"sweep v.npz --algorithm erm --protocol dg --out s {SHORT} --json").out)
    names = [f"erm, unseen {unseen}, seed {seed}" for unseen in "01" for seed in "01"]
    best = json.loads(Path("s/selected.json").read_text())
    assert row["hparams"] == best and list(best) == names
    by_domain = [row["unseen"][unseen][0] for unseen in "01"]
    assert row["accuracy"]["accuracy"][0] == pytest.approx(sum(by_domain) / 2)
    chosen = json.loads(crosstail("select s --json").out)
    assert [(one["unseen"], one["seed"]) for one in chosen] == [("0", 0), ("0", 1), ("1", 0), ("1", 1)]
    words = "fit v.npz --algorithm erm --protocol dg --width 8 --steps 6 --batch-size 4 --evaluations 2 --json"
    for name, one in zip(names, chosen, strict=True):
        fold = f"--unseen {one['unseen']} --seed {one['seed']} --out {one['unseen']}{one['seed']}"
        result = json.loads(crosstail(f"{words} --hparams s/selected.json {fold}").out)
        assert result["spec"]["hparams"] == best[name] and result["validation"]["average"] == one["validation"]
        key = msgspec.convert(result["spec"], RunSpec).key
        assert Store(Path("s")).results()[key].test["average"] == result["test"]["average"]  # the sweep's run
    wrong = crosstail(f"{words} --hparams s/selected.json --unseen 1 --seed 2 --out wrong")
    told = " ".join(wrong.err.split())
    assert wrong.code == 2 and "erm, unseen 1, seed 2" in told and "erm, unseen 1, seed 1" in told


def test_a_toml_file_has_the_same_words_and_options_come_first(crosstail, swept):
    Path("plan.toml").write_text(
        'dataset = "v.npz"\nalgorithm = ["erm", "boda:retrain"]\nwidth = 8\nsteps = 6\nbatch-size = 4\nseeds = 2\n'
        'evaluations = 2\ntrials = 9\nlauncher = "inline"\n'
    )
    done = crosstail("sweep --plan plan.toml --out s --trials 2")
    assert done.code == 0 and done.err == ""  # it is the sweep that is there already
    Path("plan.toml").write_text(Path("plan.toml").read_text().replace('["erm", "boda:retrain"]', '"erm"'))
    assert crosstail("sweep --plan plan.toml --out s --trials 2").err == ""


def test_select_writes_what_fit_takes(crosstail, swept):
    done = crosstail("select s --out best.json")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    best = json.loads(Path("best.json").read_text())
    assert best == json.loads((swept / "selected.json").read_text()) and list(best) == ["erm", "boda:retrain"]
    plan = Store(swept).plans()[0]
    for entry, words in best.items():
        assert words in plan.drawn[entry]
    chosen = json.loads(crosstail("select s --json").out)
    assert [(choice["method"], choice["finished"], choice["missing"]) for choice in chosen] == [
        ("erm", 2, 0),
        ("boda:retrain", 2, 0),
    ]
    words = (
        "fit v.npz --algorithm boda --second-stage retrain --width 8 --steps 6 --batch-size 4 --evaluations 2 --json"
    )
    result = json.loads(crosstail(f"{words} --hparams best.json --out run").out)
    key = msgspec.convert(result["spec"], RunSpec).key
    assert Store(swept).results()[key].test["average"] == result["test"]["average"]  # the same run as in the sweep
    best["boda:retrain"] = {"nu": 0.5, "lr": 0.002}
    Path("best.json").write_text(json.dumps(best))
    result = json.loads(crosstail(f"{words} --hparams best.json --hp lr=0.004 --out other").out)
    assert (result["spec"]["hparams"]["nu"], result["spec"]["hparams"]["lr"]) == (0.5, 0.004)


def test_status_of_a_finished_sweep(crosstail, swept):
    done = crosstail("status s")
    assert done.code == 0 and max(map(len, done.out.splitlines())) <= 80
    rows = [line.split() for line in done.out.splitlines()]
    assert ["erm", "3/3", "0", "0", "0", "s"] in rows and ["all", "6/6", "0", "0", "0", "s"] in rows
    erm = json.loads(crosstail("status s --json").out)[0]
    assert erm == {"method": "erm", "planned": 3, "done": 3, "running": 0, "failed": 0, "remaining": 0.0}
    assert "6/6" in crosstail("status s --watch").out


def test_watching_ends_with_the_sweep(swept, monkeypatch, capsys):
    hidden = Path("s/hidden")
    first, *_ = (swept / "runs").iterdir()
    first.rename(hidden)
    waits = []

    def wait(seconds):
        waits.append(seconds)
        hidden.rename(first)

    monkeypatch.setattr("crosstail.cli.status.time.sleep", wait)
    status_command(swept, watch=True)
    assert waits == [2.0] and "6/6" in capsys.readouterr().out


def test_failures_are_reported_and_the_others_continue(crosstail, vectors):
    Path("bad.py").write_text(
        "from crosstail.algorithms._algorithm import Algorithm\n"
        "class Bad(Algorithm):\n    def losses(self, z, batch):\n        raise RuntimeError('[b]no[/] luck')\n"
    )
    words = f"sweep v.npz --algorithm bad.py --algorithm erm --out s {SHORT}"
    done = crosstail(words)
    assert done.code == 1  # bad.py has no accuracies
    assert "1/6 bad.py, trial 0: failed: RuntimeError: [b]no[/] luck" in done.err
    assert "erm, seed 1: done" in done.err
    lines = [line.strip() for line in done.out.splitlines()]
    assert "bad.py: 2 of 2 trials failed" in lines and "trial 1: error, 1 attempt" in lines
    assert "RuntimeError: [b]no[/] luck" in lines
    assert crosstail(words).code == 1
    selected = crosstail("select s")
    assert selected.code == 0 and "trial 1: error, 2 attempts" in selected.out
    watched = [line.split() for line in crosstail("status s --watch").out.splitlines()]
    assert ["bad.py", "0/2", "0", "2", "0", "s"] in watched


def test_a_dry_run_writes_nothing_and_estimates(crosstail, vectors):
    done = crosstail(f"{WORDS} --dry-run")
    assert done.code == 0 and not Path("s").exists()
    first, second, last = done.out.splitlines()
    assert first.startswith("erm: 3 runs of ") and second.startswith("boda:retrain: 3 runs of ")
    assert last.startswith("In total 6 runs, about ") and "with 1 worker" in last and "kB of disk" in last
    cost = json.loads(crosstail(f"{WORDS} --dry-run --json").out)
    assert cost["runs"] == 6 and 0 < cost["hours"] < 0.1
    crosstail(WORDS).ok()
    size = sum(file.stat().st_size for file in Path("s/runs").rglob("*") if file.is_file())
    assert cost["bytes"] == pytest.approx(size, rel=0.2)


def test_an_estimate_grows_with_the_plan(crosstail, vectors):
    def cost(words):
        return json.loads(crosstail(f"{WORDS} {words} --dry-run --json").out)

    small, large = cost(""), cost("--trials 21 --steps 600")
    assert large["runs"] == 2 * 22 and large["hours"] > 4 * small["hours"]  # of measured steps
    assert large["bytes"] == pytest.approx(small["bytes"] * 22 / 3, rel=0.1)


@pytest.mark.parametrize("backbone", ["mlp", "identity"])
def test_an_estimate_of_second_stages_that_are_fitted(crosstail, vectors, backbone):
    methods = "--algorithm erm:ncm --algorithm erm:tau_norm"
    words = f"sweep v.npz {methods} --backbone {backbone} --steps 30 --trials 2 --seeds 1 --out s"
    done = crosstail(f"{words} --dry-run")
    assert done.code == 0 and done.out.startswith("erm:ncm: 2 runs of ")
    crosstail(words).ok()


def test_every_option_is_in_the_plan(crosstail, monkeypatch):
    plans = []
    monkeypatch.setattr(drive, "sweep", lambda plan, *rest, **more: plans.append(plan) or iter(()))
    crosstail(
        "sweep digits --algorithm erm --backbone efficientnet_lite0 --tune none --width 16 --labels forward:50 "
        "--protocol dg --unseen signs --skip-broken --data-seed 6 --steps 7 --batch-size 8 "
        "--evaluations 9 --trials 4 --seeds 5 --out s"
    )
    (plan,) = plans
    shared = RunSpec(
        dataset="digits",
        algorithm="erm",
        backbone="efficientnet_lite0",
        tune="none",
        width=16,
        labels=("forward:50",),
        protocol="dg",
        unseen="signs",
        skip_broken=True,
        data_seed=6,
        steps=7,
        batch_size=8,
        evaluations=9,
    )
    assert plan.shared == replace(resolve(shared), hparams={})
    assert (plan.methods, plan.unseen, plan.trials, plan.seeds) == (("erm",), ("signs",), 4, 5)


MISTAKES = {
    "sweep v.npz --algorithm bodda --out s": "unknown algorithm 'bodda': did you mean 'boda'?",
    "sweep v.npz --algorithm boda:x --out s": "'x'",
    "sweep digitz --algorithm erm --out s": "unknown data set 'digitz': did you mean 'digits'?",
    "sweep v.npz --algorithm erm --out s --launcher rays": "unknown launcher 'rays'",
    "sweep v.npz --algorithm erm --out s --workers 0": "--workers is 0, expected 1 or more",
    "sweep v.npz --algorithm erm --out s --search grid": "--search",
    "sweep v.npz --algorithm erm --out s --trials 0": "trials is 0, expected 1 or more",
    "sweep v.npz --algorithm erm --out s --backbone small_cnn": "backbone 'small_cnn' takes images",
    "sweep --plan none.toml --out s": "none.toml: ",
    "sweep --plan wrong.toml --out s": "wrong.toml: ",
    "sweep --plan step.toml --out s": "step.toml: unknown key 'step': did you mean 'steps'?",
    "sweep --plan ten.toml --out s": 'error: invalid value for steps in ten.toml: unable to convert "ten" into int.',
    "status nowhere": "nowhere",
    "select nowhere": "nowhere",
    "select begun": "begun has no finished trial to select from",
    "fit v.npz --out run --hparams none.json": "none.json: ",
    "fit v.npz --out run --hparams step.toml": "step.toml: ",
    "fit v.npz --out run --hparams list.json": "list.json: ",
    "fit v.npz --out run --hparams best.json": "best.json has no hyperparameters for frozen:blend",
    "fit v.npz --out run --algorithm erm --hparams best.json": "unknown hyperparameter 'mu'",
}


@pytest.mark.parametrize(("words", "message"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_gets_two_lines_and_exit_code_2(refused, vectors, words, message):
    Path("wrong.toml").write_text("dataset = ")
    Path("step.toml").write_text("step = 3")
    Path("ten.toml").write_text('dataset = "v.npz"\nalgorithm = "erm"\nsteps = "ten"')
    Path("list.json").write_text('{"erm": [1]}')
    Path("best.json").write_text('{"erm": {"mu": 1.0}}')
    Store(Path("begun")).add(make(RunSpec(dataset="v.npz"), ["erm"], trials=1))
    assert message in refused(words)


def test_another_sweep_in_the_folder_is_refused(crosstail, swept):
    done = crosstail(WORDS.replace("--steps 6", "--steps 8"))
    assert done.code == 2 and "s holds another sweep: its steps is 6, not 8. Choose another --out" in done.err
    done = crosstail(f"{WORDS} --hp lr=0.1 --protocol dg --unseen 0")
    told = " ".join(done.err.split())
    assert "its protocol is 'mdlt', not 'dg', unseen is None, not '0', hyperparameter lr is None, not 0.1." in told


@pytest.mark.parametrize("wrong", ["--backbone small_cnn", "--protocol dg --unseen 9", "--hp momentum=x", "--trials 0"])
def test_a_sweep_that_fails_before_its_first_run_leaves_no_folder(refused, vectors, wrong):
    refused(f"sweep v.npz --algorithm boda --out s {wrong}")
    assert not Path("s").exists()


def test_a_terminal_gets_a_bar_per_algorithm():
    plan = make(RunSpec(dataset="digits"), ["erm", "boda:retrain"], trials=2, seeds=1)
    console = Console(force_terminal=True, width=80, file=io.StringIO())
    with sweep_progress(console, plan) as tell:
        for trial, how in enumerate(("done", "failed")):
            (spec,) = plan.runs("boda:retrain", plan.drawn["boda:retrain"][trial])
            tell(Job(spec, f"trial {trial}"), Outcome(spec.key, how, ["why"]))
    text = Text.from_ansi(console.file.getvalue()).plain
    assert "erm" in text and "2/2" in text and "1 failed" in text and max(map(len, text.splitlines())) <= 80


def test_status_and_select_do_without_torch(crosstail, swept):
    """Importing it would take longer than all they do."""
    program = (
        "import sys; from crosstail import cli; sys.argv = ['crosstail', *sys.argv[1:]]\n"
        "try:\n    cli.main()\nexcept SystemExit:\n    pass\n"
        "sys.exit('torch' in sys.modules)"
    )
    for words in ("status s", "status s --json", "select s", "--help", "sweep --help"):
        done = subprocess.run([sys.executable, "-c", program, *words.split()], capture_output=True, text=True)
        assert done.returncode == 0, f"{words}: {done.stderr}"
