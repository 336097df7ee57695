"""One path: audit → race → fit → predict → export; each command prints the next one, ready to paste."""

import csv
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosstail.sweeps import worker
from crosstail.sweeps.launchers import _launcher
from crosstail.sweeps.launchers.inline import Inline
from crosstail.testing import save_separable
from crosstail.training.existing import existing_run, no_run, point_to

PATH = ["audit", "race", "fit", "predict", "export"]


@pytest.fixture
def inline(monkeypatch):
    worker._load.cache_clear()
    worker._source.cache_clear()
    monkeypatch.setattr(_launcher, "launcher", lambda name, store, resources: Inline(store, resources))


def follow(crosstail, command, **shorter):
    """Run the printed commands from this one on; some get more options, so that they are short."""
    followed = []
    while command:
        done = crosstail(f"{command} {shorter.get(shlex.split(command)[0], '')}")
        assert done.code == 0, f"{command}: {done.err}"
        followed.append(command)
        lines = (done.out + done.err).splitlines()
        (command,) = [line.removeprefix("Next: crosstail ") for line in lines if line.startswith("Next: ")] or [""]
    return followed


def test_the_printed_commands_run_one_after_the_other(crosstail, inline, tmp_path):
    (tmp_path / "my data").mkdir()
    save_separable(tmp_path / "my data" / "v.npz", [[30, 8, 3], [3, 9, 25]])
    (tmp_path / "run").mkdir()  # somebody else's
    methods = "--algorithm erm --algorithm focal --trials 1 --seeds 1 --steps 4 --batch-size 8"
    followed = follow(crosstail, "audit 'my data/v.npz'", race=methods, fit="--steps 4 --evaluations 1")
    assert [shlex.split(command)[0] for command in followed] == [*PATH[:3], *PATH[2:]]  # few test samples: with folds
    assert all(word in followed[2] for word in ("'my data/v.npz'", "race/selected.json", "--out run-2"))
    assert not list(Path("run").iterdir())
    with Path("classes.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == len(np.load("my data/v.npz")["y"])
    crosstail("evaluate race/best 'my data/v.npz' --split test").ok()


def test_few_test_samples_lead_to_cross_validation_and_a_final_model(crosstail, vectors):
    done = crosstail(f"fit {vectors} --algorithm erm --steps 4 --evaluations 1 --batch-size 4 --data-seed 2 --out run")
    said, _, command = done.out.rpartition("Next: crosstail ")
    assert "pairs have fewer than 10 test samples. Cross-validation tests every sample once" in " ".join(said.split())
    for option in ("--folds 5 --refit", "--data-seed 2", "--out run-final"):
        assert option in command
    assert [words.split()[0] for words in follow(crosstail, command)] == ["fit", "predict", "export"]
    assert (Path("run-final") / "refit" / "result.json").exists()


@pytest.mark.parametrize("column", ["file", "path"])
def test_a_manifest_keeps_its_columns_and_is_predicted_if_it_has_a_path(crosstail, tmp_path, column):
    rng, rows = np.random.default_rng(0), [f"{column},site,label"]
    for i in range(32):
        rows.append(f"{i}.png,{'ab'[i % 2]},{'xy'[i // 2 % 2]}")
        Image.fromarray(rng.integers(0, 255, (8, 8, 3), dtype=np.uint8)).save(tmp_path / f"{i}.png")
    (tmp_path / "list.csv").write_text("\n".join(rows), encoding="utf-8")
    short = "--backbone small_cnn --algorithm erm --width 8 --resolution 8 --steps 2 --evaluations 1 --batch-size 2"
    first = f"fit list.csv --column path={column} --column domain=site {short} --out run"
    followed = follow(crosstail, first)
    assert [shlex.split(command)[0] for command in followed] == ["fit", *PATH[2:]]  # few test samples: with folds
    assert f"--column path={column}" in followed[1]
    if column == "path":
        assert "predict run-final/refit list.csv --site column:site --out classes.csv" in followed[2]
    else:  # one of its images
        assert Path(shlex.split(followed[2])[2]).suffix == ".png"
    assert followed[3] == "export run-final/refit --out model.onnx"


def test_a_final_model_is_for_new_data(crosstail, vectors):
    first = f"fit {vectors} --algorithm erm --folds 2 --steps 2 --evaluations 1 --batch-size 4 --out cv"
    followed = follow(crosstail, first)
    assert [shlex.split(command)[0] for command in followed] == ["fit", "fit", "predict", "export"]
    assert followed[2].startswith(f"predict cv/refit {vectors} ")


def test_what_is_in_the_place_of_a_run_is_said(tmp_path):
    (tmp_path / "race" / "plans").mkdir(parents=True)
    (tmp_path / "race" / "race.json").touch()
    run = tmp_path / "race" / "runs" / "abc"
    run.mkdir(parents=True)
    (run / "spec.json").touch()
    point_to(run, tmp_path / "race" / "best")
    assert f"{tmp_path}/race/best" in no_run(tmp_path / "race") and "race" in no_run(tmp_path / "race")
    assert "not finished" in no_run(run)
    assert no_run(tmp_path / "new").endswith(
        f"there is no such folder; `crosstail fit DATA --out {tmp_path}/new` makes one"
    )
    (tmp_path / "racing" / "plans").mkdir(parents=True)
    (tmp_path / "racing" / "forecast.json").touch()
    assert "`crosstail race` command goes on" in no_run(tmp_path / "racing")
    assert f"{tmp_path}/racing/best" in no_run(tmp_path / "racing")
    assert f"{tmp_path}/race?" in no_run(tmp_path / "raze")
    assert f"{run}" in no_run(run.parent)  # a folder of runs
    assert "is a file" in no_run(run / "spec.json")


@pytest.mark.parametrize("links", [True, False])
def test_best_leads_to_the_run_also_without_links(tmp_path, monkeypatch, links):
    def refuse(*_, **__):
        raise OSError("no links here")

    if not links:
        monkeypatch.setattr(Path, "symlink_to", refuse)
    for name in ("old", "new"):  # the second replaces the first
        run = tmp_path / "race" / "runs" / name
        run.mkdir(parents=True)
        (run / "result.json").touch()
        point_to(run, tmp_path / "race" / "best")
    (tmp_path / "race").rename(tmp_path / "moved")
    assert existing_run(tmp_path / "moved" / "best").resolve() == tmp_path / "moved" / "runs" / "new"


def test_a_graph_from_another_folder_says_where_its_data_are(crosstail, vectors, tmp_path, monkeypatch):
    crosstail(f"fit {vectors} --algorithm erm --steps 2 --evaluations 1 --batch-size 4 --out run")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    done = crosstail("graph ../run")
    text = " ".join(done.err.split())
    assert done.code == 2 and "../run was trained on v.npz" in text and str(tmp_path) in text.replace(" ", "")


def test_names_match_whatever_their_case(crosstail, vectors):
    words = f"fit {vectors} --steps 2 --evaluations 1 --batch-size 4 --json"
    plain = crosstail(f"{words} --algorithm boda:retrain --backbone mlp --protocol dg --unseen 1 --out a")
    other = crosstail(f"{words} --algorithm BoDA:Retrain --backbone MLP --protocol DG --unseen 1 --out a")
    assert plain.code == 0 and other == plain  # the same run, so it is not trained again
    crosstail("list Algorithms BoDA-M").ok()
