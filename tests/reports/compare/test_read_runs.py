import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from crosstail.reports.compare.read_runs import read_result, read_runs
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.store import Store
from crosstail.training.spec import RunSpec, identifying_fields

HITS = [[9, 8], [5, 0]]


def test_run_folders_at_any_depth_give_one_row_each(make_run, tmp_path):
    make_run("a", HITS)
    make_run("more/b", HITS, seed=1)
    make_run("more/deep/c", HITS, algorithm="boda", second_stage="retrain")
    table = read_runs([tmp_path]).table
    assert sorted(zip(table["method"], table["seed"], strict=True)) == [("boda:retrain", 0), ("erm", 0), ("erm", 1)]
    assert set(table["data"]) == {"photos"}
    assert read_runs([tmp_path / "a", tmp_path / "more/b"]).table["seed"].tolist() == [0, 1]


def test_what_is_not_a_finished_run_is_named_and_not_read(make_run, tmp_path):
    make_run("good", HITS)
    for name in ("unfinished", "garbage", "shape", "hits", "type"):
        make_run(name, HITS, seed=len(name))
    (tmp_path / "unfinished/result.json").unlink()
    (tmp_path / "garbage/result.json").write_bytes(b"\x00{")
    for name, change in {
        "shape": lambda result: result.update(domains=["one"]),
        "hits": lambda result: result["test"].update(hits=[[99, 0], [0, 0]]),
        "type": lambda result: result["spec"].update(steps="ten"),
    }.items():
        file = tmp_path / name / "result.json"
        result = json.loads(file.read_text())
        change(result)
        file.write_text(json.dumps(result))
    runs = read_runs([tmp_path])
    assert [run.folder for run in runs.table["run"]] == [tmp_path / "good"]
    why = {path.name: reason for path, reason in runs.skipped}
    assert why["unfinished"] == "not finished"
    assert "result.json" in why["garbage"] and "1 domains" in why["shape"]
    assert "99 hits of 10" in why["hits"] and "$.spec.steps" in why["type"]


def test_a_run_that_is_there_twice_counts_once(make_run, tmp_path):
    shutil.copytree(make_run("a", HITS), tmp_path / "b")
    runs = read_runs([tmp_path])
    assert len(runs.table) == 1 and str(tmp_path / "a") in runs.skipped[0].why


PARTS = ({}, {"protocol": "dg", "unseen": "d1"}, {"folds": 3, "fold": 1})


@pytest.mark.parametrize("spec", PARTS)
@pytest.mark.parametrize("labels", [None, ("uniform",)])
def test_runs_on_other_data_of_the_same_name_and_size_are_other_runs(make_run, tmp_path, spec, labels):
    for name, digit in (("a", "0"), ("b", "1")):
        file = make_run(name, HITS, labels=labels, **spec) / "result.json"
        result = json.loads(file.read_text())
        result["data"] |= {"checksum": digit * 64, "source": digit * 64 if spec else None}
        file.write_text(json.dumps(result))
    runs = read_runs([tmp_path])
    assert runs.skipped == () and runs.table["data"].nunique() == 2


def test_the_folds_of_one_source_are_one_setting(make_run, tmp_path):
    for fold in (1, 2):
        file = make_run(str(fold), HITS, folds=2, fold=fold) / "result.json"
        result = json.loads(file.read_text())
        result["data"] |= {"checksum": str(fold) * 64, "source": "c" * 64}
        file.write_text(json.dumps(result))
    assert read_runs([tmp_path]).table["data"].nunique() == 1


OTHER = {"algorithm": "coral", "second_stage": "retrain", "protocol": "dg", "unseen": "d0", "labels": ("uniform",)}
OTHER |= {
    "columns": {"domain": "site"},
    "group_by": r"(\d+)_",
    "backbone": "mlp",
    "weights": "random",
    "names": "keep",
    "hparams": {"lr": 0.1},
    "head": "linear",
    "tune": "last",
    "tuned_share": 0.5,
    "optimizer": "sgd",
    "left_out": "d2",
    "schedule": "cosine",
}
OTHER |= {"average": "swad", "precision": "bf16", "dataset": "others", "group_by": "patient", "select_on": "worst_pair"}


@pytest.mark.parametrize("name", [name for name in identifying_fields(RunSpec) if name != "stop_at"])
@pytest.mark.parametrize("unseen", [None, "d1"])
def test_runs_that_differ_in_any_identifying_field_are_different_runs(make_run, tmp_path, name, unseen):
    spec = {"protocol": "dg", "unseen": unseen} if unseen else {}
    if name in ("folds", "fold"):
        spec = {"folds": 5, "fold": 1}
    if name == "left_out":
        spec = {"protocol": "dg", "unseen": "d1"}
    first = read_result(make_run("a", HITS, **spec)).spec
    value = getattr(first, name)
    other = OTHER.get(name) if name in OTHER else not value if isinstance(value, bool) else (value or 0) + 2
    other = "mdlt" if name == "protocol" and unseen else other
    make_run("b", HITS, **{**spec, name: other})
    runs = read_runs([tmp_path])
    assert len(runs.table) == 2 and runs.skipped == ()
    assert len({*zip(*(runs.table[name] for name in ("data", "method", "seed", "part")), strict=True)}) == 2  # by name


def test_a_trace_does_not_make_another_run(make_run, tmp_path):
    make_run("a", HITS)
    make_run("b", HITS, trace=True)
    assert len(read_runs([tmp_path]).table) == 1


def test_a_setting_is_named_by_what_differs_from_its_namesakes(make_run, tmp_path):
    for i, spec in enumerate(({}, {"head": "linear", "tune": "none"}, {"evaluations": 3})):
        make_run(str(i), HITS, **spec)
    make_run("other", HITS, dataset="elsewhere/drawings")
    assert read_runs([tmp_path]).table["data"].tolist() == [
        "photos, tune all, head default, evaluations default",
        "photos, tune none, head linear, evaluations default",
        "photos, tune all, head default, evaluations 3",
        "drawings",
    ]


def test_other_settings_are_other_data(make_run, tmp_path):
    make_run("a", HITS)
    make_run("b", HITS, steps=20)
    make_run("c", HITS, labels=("forward:50", "backward:50"))
    make_run("d", HITS, protocol="dg", unseen="d0")
    names = ["photos, steps 10", "photos, steps 20", "photos, forward:50 backward:50", "photos, dg"]
    assert read_runs([tmp_path]).table["data"].tolist() == names


def test_hyperparameters_name_a_method_only_where_they_differ(make_run, tmp_path):
    for i, nu in enumerate((0.5, 1.0)):
        make_run(f"boda{i}", HITS, algorithm="boda", hparams={"nu": nu, "lr": 0.01})
    make_run("erm", HITS, hparams={"lr": 0.01})
    assert sorted(read_runs([tmp_path]).table["method"]) == ["boda, nu 0.5", "boda, nu 1.0", "erm"]


@pytest.fixture
def sweep(make_run, tmp_path):
    """Two trials of two algorithms; the second trial of erm is the better, and has a second seed."""
    shared = read_result(make_run("one", HITS)).spec
    trials = ({"lr": 0.1}, {"lr": 0.2})
    plan = Plan(shared=shared, methods=("erm",), trials=2, seeds=2, drawn={"erm": trials})
    Store(tmp_path / "sweep").add(plan)
    for hparams, seed, hits in (
        ({"lr": 0.1}, 0, [[5, 5], [5, 5]]),
        ({"lr": 0.2}, 0, [[9, 8], [5, 1]]),
        ({"lr": 0.2}, 1, [[8, 8], [5, 1]]),
    ):
        key = replace(shared, hparams=hparams, seed=seed).key
        make_run(f"sweep/runs/{key}", hits, hparams=hparams, seed=seed)
    return tmp_path / "sweep"


def test_of_a_sweep_the_seeds_of_the_best_trial_are_chosen(sweep):
    runs = read_runs([sweep])
    assert len(runs.table) == 3 and runs.skipped == ()
    assert runs.chosen["hparams"].tolist() == ['{"lr":0.2}'] * 2 and sorted(runs.chosen["seed"]) == [0, 1]
    assert set(runs.chosen["method"]) == {"erm"} and set(runs.chosen["trials"]) == {2}


def test_a_failed_run_and_a_misplaced_result_of_a_sweep_are_named(sweep):
    (key,) = (p for p in (sweep / "runs").iterdir() if '"seed": 1' in (p / "spec.json").read_text())
    shutil.copytree(key, sweep / "runs" / "0123456789abcdef")
    key.rename(sweep / "work_it")
    (sweep / "work").mkdir()
    (sweep / "work_it").rename(sweep / "work" / f"{key.name}.new")
    (sweep / "work" / f"{key.name}.new" / "failure.json").write_text(
        json.dumps({"kind": "error", "error": ["ValueError: bad"], "attempts": 1})
    )
    runs = read_runs([sweep])
    assert len(runs.chosen) == 1
    assert sorted(reason for _, reason in runs.skipped) == [
        "error: ValueError: bad",
        "result.json belongs to another run",
    ]


def test_nothing_finished_is_an_error(tmp_path):
    with pytest.raises(ValueError, match="no finished run"):
        read_runs([tmp_path])
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_runs([Path("nowhere")])
