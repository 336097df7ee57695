"""crosstail fit: output, files, and error messages."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import msgspec
import numpy as np
import pytest
from PIL import Image
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from crosstail import __version__ as crosstail_version
from crosstail import cli
from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder
from crosstail.training.resolve import resolve
from crosstail.training.result import RunResult

SHORT = "--algorithm boda --backbone mlp --width 8 --steps 6 --batch-size 4 --evaluations 2"


def test_json_is_the_result_and_nothing_else(crosstail, vectors):
    done = crosstail(f"fit {vectors} --out run {SHORT} --json")
    assert done.code == 0 and done.err == ""
    result = msgspec.json.decode(done.out, type=RunResult)
    assert result == RunFolder(Path("run")).result()
    assert result.spec.algorithm == "boda" and result.spec.dataset == "v.npz"
    card = Path("run/model_card.md").read_text(encoding="utf-8")
    assert f"crosstail {crosstail_version}, torch {version('torch')}" in card


LABELS = (
    "pair average, %",
    "worst pair",
    "average over domains",
    "zero-shot pairs",
    "many-shot pairs",
)


def test_the_table_shows_the_accuracies_within_80_columns(crosstail, vectors, full_page):
    done = crosstail(f"fit {vectors} --out run {SHORT}")
    assert done.code == 0 and done.err == ""
    result = RunFolder(Path("run")).result()
    lines = done.out.splitlines()
    assert max(map(len, lines[:-1])) <= 80
    cells = {label: line.split() for line in lines for label in LABELS if line.startswith(label)}
    for row, value in (
        ("pair average, %", result.test.pair_average),
        ("worst pair", result.test.worst_pair),
        ("average over domains", result.test.average),
        ("zero-shot pairs", result.test.shots["zero"]),
    ):
        assert f"{100 * value:.1f}" in cells[row]
    assert "many-shot pairs" not in cells  # no pair has more than 100 samples
    assert not any(symbol in done.out for symbol in "αβγ")  # they are in the appendix of the page
    assert "The page is in run/report.html." in lines
    assert re.fullmatch(f"Next: crosstail fit {vectors} .* --folds 5 --refit --out run-final", lines[-1])
    assert f"<td>{100 * result.test.pair_average:.1f}</td>" in Path("run/report.html").read_text(encoding="utf-8")


def test_the_same_command_again_shows_the_same_result(crosstail, vectors):
    words = f"fit {vectors} --out run {SHORT} --second-stage retrain --json"
    first = crosstail(words)
    Path("run/report.html").unlink()
    assert crosstail(words) == first
    assert Path("run/report.html").exists()


def test_each_fold_has_a_page_and_so_have_all_together(crosstail, vectors, full_page):
    done = crosstail(f"fit {vectors} --out dg --protocol dg {SHORT.replace('boda', 'erm')}")
    assert done.code == 0 and "dg/report.html" in done.out
    assert re.fullmatch("Next: crosstail fit .*--protocol dg .*--refit --out dg", done.out.splitlines()[-1])
    titles = [re.search("<title>(.*?)</title>", Path(p).read_text(encoding="utf-8"))[1] for p in PAGES]
    assert titles == ["erm on v.npz: each domain unseen in turn", "erm on v.npz: unseen 0", "erm on v.npz: unseen 1"]


PAGES = ["dg/report.html", "dg/0/report.html", "dg/1/report.html"]


def test_each_fold_has_a_log_and_the_runs_are_those_without(crosstail, vectors):
    words = f"--protocol dg {SHORT.replace('boda', 'erm')} --json"
    logged = crosstail(f"fit {vectors} --out dg {words} --log tensorboard")
    assert logged.code == 0 and logged.err == ""
    plain = crosstail(f"fit {vectors} --out plain {words}")
    runs = [json.loads(done.out)["runs"] for done in (logged, plain)]
    for fold, with_log, without in zip("01", *runs, strict=True):
        assert with_log["test"] == without["test"] and with_log["spec"] == without["spec"]
        written = EventAccumulator(f"dg/{fold}/tensorboard")
        written.Reload()
        (final,) = written.Scalars("final/test/average")
        assert final.step == with_log["selected_step"] and final.value == pytest.approx(with_log["test"]["average"])
    assert not list(Path("plain").rglob("tensorboard"))


def test_every_option_is_in_the_spec(crosstail, asked):
    done = crosstail(
        "fit digits --out run --algorithm boda_m --second-stage retrain --backbone efficientnet_lite0 --tune none "
        "--width 16 --labels forward:50 --labels uniform --labels step:10 --hp nu=0.5 --hp temperature=2 "
        "--hp warmup=3 --skip-broken --seed 5 --data-seed 6 "
        "--steps 7 --batch-size 8 --evaluations 9 --json"
    )
    assert done.code == 0, done.err
    assert asked == [
        resolve(
            RunSpec(
                dataset="digits",
                algorithm="boda_m",
                labels=("forward:50", "uniform", "step:10"),
                data_seed=6,
                backbone="efficientnet_lite0",
                tune="none",
                width=16,
                hparams={"nu": 0.5, "temperature": 2, "warmup": 3},
                second_stage="retrain",
                seed=5,
                steps=7,
                batch_size=8,
                evaluations=9,
                protocol="mdlt",
                skip_broken=True,
            )
        )
    ]


def test_defaults_are_those_of_the_data_sheet(crosstail, asked):
    crosstail("fit digits --out run --json").ok()
    assert asked == [resolve(RunSpec(dataset="digits"))]
    assert (asked[0].backbone, asked[0].steps, asked[0].batch_size) == ("small_cnn", 1000, 24)


def test_freezing_takes_the_pretrained_backbone(crosstail, asked):
    crosstail("fit digits --out run --tune none --json")
    assert asked[0].backbone == "efficientnet_lite0"


def test_two_ways_to_write_a_number_are_one_run(crosstail, asked):
    for text in ("1e-3", "0.001", "0.0010"):
        crosstail(f"fit digits --out run --hp lr={text} --json")
    assert len({spec.key for spec in asked}) == 1 and asked[0].hparams["lr"] == 0.001


MISTAKES = {
    "fit digits --out run --algorithm bodda": "unknown algorithm 'bodda': did you mean 'boda'?",
    "fit digitz --out run": "unknown data set 'digitz': did you mean 'digits'?",
    "fit nowhere.npz --out run": "nowhere.npz: there is no such file",
    "fit --data v.npz --out run": "DATA comes first, without --data: crosstail fit v.npz",
    "fit v.mpz --out run": "v.mpz: there is no such file or folder, did you mean v.npz?",
    "fit v.npz --out run --accelerator cuda": "--accelerator cuda: torch finds no such device",
    "fit v.npz --out run --algorithm boda:retrian": "unknown second stage 'retrian': did you mean 'retrain'?",
    "fit v.npz --out run --algorithm ./none.py": "none.py: cannot be read",
    "fit v.npz --out run --backbone mpl": "unknown backbone 'mpl': did you mean 'mlp'?",
    "fit v.npz --out run --backbone small_cnn": "backbone 'small_cnn' takes images, but the data are vectors of shape",
    "fit v.npz --out run --unseen a": "remove --unseen a",
    "fit v.npz --out run --protocol gd": "unknown protocol 'gd': did you mean 'dg'?",
    "fit v.npz --out run --protocol dg --unseen z": "--unseen is 'z', expected one of the domains of v:",
    "fit v.npz --out run --fold 2": "--folds",
    "fit v.npz --out run --folds 1": "folds is 1, expected 2 or more",
    "fit v.npz --out run --folds 3 --fold 4": "fold is 4, expected 1 to 3",
    "fit v.npz --out run --folds 3 --protocol dg": "remove --folds",
    "fit v.npz --out run --folds 999": "--folds is 999, but there are only",
    "fit v.npz --out run --folds 3 --fold 1 --refit": "remove --unseen, --fold and --stop-at",
    "fit v.npz --algorithm boda --out run --stop-at 3 --stop-at 3": "--stop-at has 2 values",
    "fit v.npz --algorithm boda --out run --stop-at 1001": "--stop-at is 1001, expected 0 to 1000",
    "fit v.npz --out run --column domain": "--column: expected name=value, got 'domain'",
    "fit v.npz --out run --tune none": "remove --tune none and use --backbone mlp",
    "fit i.npz --out run --tune none --backbone small_cnn": "has no pretrained weights for --tune none",
    "fit v.npz --out run --backbone mlp --hp nu": "--hp: expected name=value, got 'nu'",
    "fit v.npz --out run --backbone mlp --hp nu=": "--hp: expected name=value, got 'nu='",
    "fit v.npz --out run --backbone mlp --hp mu=1": "unknown hyperparameter 'mu': there are lr,",
    "fit v.npz --algorithm boda --out run --backbone mlp --hp nu=much": "hyperparameter nu is 'much', expected float",
    "fit v.npz --out run --algorithm erm --hp lr=-1": "Invalid learning rate: -1.0",
    "fit v.npz --algorithm boda --out run --backbone mlp --hp window=0": "window is 0, expected 1 or more",
    "fit v.npz --algorithm boda --out run --backbone mlp --hp temperature=-1": "temperature is -1.0, expected",
    "fit v.npz --out run --backbone mlp --steps 0": "steps is 0, expected 1 or more",
    "fit v.npz --out run --backbone mlp --batch-size 0": "batch_size is 0, expected 1 or more",
    "fit v.npz --out run --backbone mlp --width 0": "width is 0, expected 1 or more",
    "fit i.npz --out run --width 12": "width of small_cnn is 12, expected a multiple of 8",
    "fit v.npz --out run --backbone mlp --labels sideways:3": "sideways",
    "fit broken.npz --out run --backbone mlp": "broken.npz: cannot be read as an .npz file",
}


def test_a_phase_that_the_run_is_too_short_for_is_named(crosstail, vectors, full_page):
    note = "warmup is 500 and the run has 6 steps, so the phase after it is never reached"
    for folds in ("", "--folds 2"):
        done = crosstail(f"fit {vectors} --out run{folds[-1:]} {SHORT.replace('boda', 'boda@reference')} {folds}")
        page = Path(f"run{folds[-1:]}/report.html").read_text(encoding="utf-8")
        assert done.code == 0 and done.out.count(f"note: {note}") == 1 and page.count(f"Note: {note}") == 1
    assert f"Note: {note}" in Path("run/model_card.md").read_text(encoding="utf-8")
    assert "note: " not in crosstail(f"fit {vectors} --out other {SHORT}").out


@pytest.mark.parametrize(("words", "message"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_gets_two_lines_and_exit_code_2(refused, vectors, words, message):
    Path("broken.npz").write_bytes(Path(vectors).read_bytes()[:300])
    np.savez("i.npz", x=np.zeros((4, 8, 8, 3), np.uint8), y=[0, 1, 0, 1], domain=[0, 0, 1, 1], split=["train"] * 4)
    assert message in refused(words)


def test_an_option_that_is_missing_or_unknown_has_exit_code_2(crosstail):
    for words, named in (("fit digits", "--out"), ("fit digits --out run --colour red", "--colour"), ("fitt", "fitt")):
        done = crosstail(words)
        assert done.code == 2 and done.out == "" and named in done.err and "Traceback" not in done.err


def test_a_mistake_can_be_corrected_in_the_same_folder(crosstail, vectors):
    assert crosstail(f"fit {vectors} --out run {SHORT} --hp nu=much").code == 2
    assert crosstail(f"fit {vectors} --out run {SHORT.replace('boda', 'bodda')}").code == 2
    crosstail(f"fit {vectors} --out run {SHORT}").ok()


def test_a_folder_with_another_run_is_refused(crosstail, vectors):
    crosstail(f"fit {vectors} --out run {SHORT}").ok()
    done = crosstail(f"fit {vectors} --out run {SHORT} --seed 1 --second-stage retrain")
    assert done.code == 2 and len(done.err.splitlines()) <= 2
    assert "second_stage" in done.err and "seed" in done.err


def test_a_folder_that_cannot_be_made_has_exit_code_1(crosstail, vectors):
    done = crosstail(f"fit {vectors} --out v.npz/run {SHORT}")
    assert done.code == 1 and done.err == "error: Not a directory: v.npz/run\n"


def test_a_divergent_run_is_a_failed_job_with_exit_code_1(crosstail, vectors):
    done = crosstail(f"fit {vectors} --out run {SHORT} --hp lr=1e30")
    assert done.code == 1 and done.out == "" and len(done.err.splitlines()) == 2
    assert done.err.startswith("error: the loss term ") and "(--hp lr=...)" in done.err


def test_other_faults_keep_their_traceback(crosstail, vectors, monkeypatch):
    def fails(spec, out, **options):
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr("crosstail.workflows.fit.train_run", fails)
    with pytest.raises(RuntimeError, match="a fault of ours"):
        crosstail(f"fit {vectors} --out run {SHORT}")


@pytest.mark.parametrize(
    ("words", "resumes"),
    [
        *[(f"{verb} data --out o", True) for verb in ("demo", "fit", "embed", "sweep", "race", "predict run")],
        *[("predict run data --out=o", True), ("predict run data", False)],
        *[("data pacs --download", True), ("data pacs --check", False)],
        *[(f"{verb} data --out o", False) for verb in ("audit", "evaluate run", "graph", "export", "report")],
    ],
)
def test_ctrl_c_says_how_to_go_on_where_that_is_possible(crosstail, monkeypatch, words, resumes):
    def stopped(words):
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "_run", stopped)
    done = crosstail(words)
    assert done.code == 1
    assert done.err == ("stopped: run the same command again to resume\n" if resumes else "stopped\n")


def command(*words, cwd):
    program = Path(sys.executable).parent / "crosstail"
    return subprocess.run(
        [str(program), *words], cwd=cwd, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}
    )


def test_the_installed_program_tells_a_mistake_without_a_traceback(tmp_path):
    done = command("fit", "digits", "--algorithm", "bodda", "--out", "run", cwd=tmp_path)
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.startswith("error: unknown algorithm 'bodda': did you mean 'boda'?")
    assert len(done.stderr.splitlines()) <= 2 and not (tmp_path / "run").exists()


def test_the_installed_program_answers(tmp_path):
    done = command("list", "datasets", "--json", cwd=tmp_path)
    assert done.returncode == 0 and done.stderr == ""
    assert "digits" in [row["name"] for row in json.loads(done.stdout)]


def test_what_is_left_out_is_said_before_the_work_on_the_rest(crosstail, make_photos, monkeypatch):
    make_photos(8)
    (Path("photos") / "day" / "plain" / "3.jpg").write_bytes(b"no picture")
    events = []

    def train(*given, progress, **more):
        progress("embedding", 0, 31)
        events.append("train")
        raise ZeroDivisionError

    monkeypatch.setattr("crosstail.workflows.fit.train_run", train)
    monkeypatch.setattr("crosstail.cli._progress.say_all", lambda console, label, lines: events.append(list(lines)))
    with pytest.raises(ZeroDivisionError):
        crosstail("fit photos --skip-broken --algorithm erm --out run")
    *told, last = events
    assert any("left out, as it is broken: day/plain/3.jpg" in note for (note,) in told) and last == "train"
    monkeypatch.undo()


def test_a_trace_is_kept_where_it_is_asked_for_from_the_start(crosstail, vectors, full_page):
    crosstail(f"fit {vectors} {SHORT} --out plain").ok()
    done = crosstail(f"fit {vectors} {SHORT} --out plain --trace")
    assert done.code == 0 and "--trace" in done.out
    done = crosstail(f"fit {vectors} {SHORT} --out traced --trace")
    assert done.code == 0 and "--trace" not in done.out.partition("Next: ")[0]
    assert [record.trace is not None for record in RunFolder(Path("traced")).records()] == [True] * 3
    assert '"input":"range"' in Path("traced/report.html").read_text(encoding="utf-8")


def test_a_note_on_the_split_is_about_the_samples_that_are_trained_on(crosstail, vectors):
    arrays = dict(np.load(vectors))
    np.savez(vectors, **arrays, groups=np.arange(len(arrays["y"])) // 2)
    for labels in ("", "--labels forward:8"):
        done = crosstail(f"fit {vectors} {SHORT} {labels} --out run{len(labels)}").ok()
        assert (done.out + done.err).count("stay together") == 1


SMALL = "--backbone small_cnn --resolution 16 --width 8 --steps 2 --batch-size 4 --evaluations 1"


def test_a_folder_of_classes_just_runs(crosstail, tmp_path, full_page):
    rng = np.random.default_rng(0)
    for name, level in (("cat", 60), ("dog", 190)):
        (tmp_path / "pets" / name).mkdir(parents=True)
        for i in range(10):
            pixels = rng.normal(level, 20, (32, 32, 3)).clip(0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(tmp_path / "pets" / name / f"{i}.png")
    for method, more in (("frozen:blend", "--resolution 32"), ("bsoftmax:blend", SMALL)):
        done = crosstail(f"fit pets --out {method[0]} {more}")
        result = msgspec.json.decode((tmp_path / method[0] / "result.json").read_bytes(), type=RunResult)
        assert done.code == 0 and result.spec.method == method and result.domains == ["all"]
        assert "no folders for domains: all 20 images are in one domain" in done.err and "report.html" in done.out
        assert "no folders for domains" in (tmp_path / method[0] / "report.html").read_text()
    assert "no folders for domains: all 20 images" in crosstail("audit pets").out.lower()
