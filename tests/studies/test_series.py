"""A small series on vectors: which runs are executed and recorded, in which order, and none is repeated."""

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from studies.paper_claims import __main__, design
from studies.paper_claims.design import DIVERGENT, RATES, SETTINGS, Cell, Run, Study
from studies.paper_claims.records import Records
from studies.paper_claims.series import prepared, resume

from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder

SIZES = {"width": 8, "steps": 6, "batch_size": 4, "evaluations": 2, "tune": "all", "augment": False}
SMALL = {"models": 2, "model_steps": 3, "seeds": 2, "rates": RATES[:2]}
TINY = replace(SETTINGS["cnn"], halve=False, shared=RunSpec(dataset="vectors.npz", backbone="mlp", **SIZES), **SMALL)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "vectors.npz"
    save_separable(path, [[30, 8, 2], [3, 9, 25]])
    return path


@pytest.fixture(scope="module", autouse=True)
def few_methods():
    """The design with less of everything."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(design, "METHODS", ("erm", "boda"))
        patch.setattr(design, "EVERYWHERE", ("erm",))
        patch.setattr(design, "NO_WARMUP", design.NO_WARMUP[:1])
        patch.setattr(design, "NU", (0.0,))
        patch.setattr(design, "CONFIGURATIONS", dict(list(design.CONFIGURATIONS.items())[:2]))
        yield


def completed(data, folder, setting=TINY, records=None, **options):
    study = Study(setting, Records(records or folder / "records.jsonl"))
    with ThreadPoolExecutor(1) as pool:
        resume(study, data, folder, pool, **options)
    return study


@pytest.fixture(scope="module")
def done(data, tmp_path_factory):
    """A series to its end, and its folder."""
    folder = tmp_path_factory.mktemp("series")
    return completed(data, folder), folder


def folder_of(study, run, data, folder):
    return RunFolder(folder / study.setting.spec(run, data).key)


def by_key(study):
    return {run.key: run for run in study.wanted() if run is not None}


def test_every_run_of_the_design_is_in_the_records_and_no_other(done):
    study, _ = done
    assert set(Records(study.records.file).runs) == set(by_key(study)) and study.cost() == (0, 0.0)
    for algorithm in ("erm", "boda"):
        for stage in (1, 2):
            best = max(RATES[:2], key=lambda lr: study.records.validation(Run(Cell(algorithm), lr).key, stage))
            finals = [Run(Cell(algorithm), best, seed) for seed in range(2)]
            assert study.finals(Cell(algorithm), stage) == finals
            assert all("bound" in study.records.runs[run.key] for run in finals)
    for cell in (*design.NO_WARMUP, Cell("boda", changed=(("nu", 0.0),))):
        run = Run(cell, study.chosen(Cell("boda"), 1))
        hparams = study.records.runs[run.key]["spec"]["hparams"]
        assert {name: hparams[name] for name, _ in cell.changed} == dict(cell.changed)


def test_learning_rates_come_first_then_the_seeds_of_all_methods(done):
    study, _ = done
    empty = Study(TINY, Records(study.records.file.with_name("none.jsonl")))
    known = [(run.cell.algorithm, run.lr) for run in empty.missing() if not run.short][:4]
    assert known == [(name, rate) for rate in RATES[:2] for name in ("erm", "boda")]
    order = list(by_key(study).values())
    seeds = [run.seed for run in order if run.cell in (Cell("erm"), Cell("boda")) and not run.short]
    assert seeds == sorted(seeds)
    assert all(run.cell.where == DIVERGENT for run in order[: len(seeds)])


def test_a_record_is_the_run_without_its_machine(done, data):
    study, folder = done
    for key, run in by_key(study).items():
        record, result = study.records.runs[key], folder_of(study, run, data, folder).finished_result()
        assert str(data.parent) not in json.dumps(record) and record["spec"]["dataset"] == "vectors.npz"
        last = record["stages"][-1]
        assert len(record["stages"]) == (1 if run.short else 2)
        assert last["hits"] == result.test.hits and last["step"] == result.selected_step
        assert last["validation"] == pytest.approx(result.validation.pair_average, abs=1e-5)


def test_the_first_stage_has_the_accuracies_of_a_run_without_a_second(done, data, tmp_path):
    study, _ = done
    run = Run(Cell("boda"), RATES[1])
    spec = replace(study.setting.spec(run, data), second_stage=None)
    result = train_run(spec, tmp_path / "run").result
    stage = study.records.runs[run.key]["stages"][0]
    assert stage["hits"] == result.test.hits and stage["step"] == result.selected_step


def test_a_seed_redraws_the_samples_that_the_tails_keep(data):
    specs = [TINY.spec(Run(Cell("erm"), 0.001, seed), data) for seed in (0, 1)]
    assert [spec.data_seed for spec in specs] == [spec.seed for spec in specs] == [0, 1]


def test_the_bound_holds_and_few_shot_pairs_are_measured(done):
    study, _ = done
    looked = [record for record in study.records.runs.values() if "bound" in record]
    assert len(looked) >= 4
    for record in looked:
        for _, empirical, theoretical in record["bound"]:
            assert theoretical <= empirical + 1e-6
        assert record["discrepancy"]["few"]["mean"] > 0


def test_what_is_in_the_records_is_not_run_again(done, data, tmp_path):
    study, _ = done
    lines = study.records.file.read_text().splitlines()
    (tmp_path / "records.jsonl").write_text("\n".join(lines[1:]) + "\n")
    gone = json.loads(lines[0])
    again = completed(data, tmp_path)
    names = [path.name for path in tmp_path.iterdir() if path.is_dir()]
    assert names == [again.setting.spec(by_key(again)[gone["run"]], data).key]
    kept = Records(again.records.file).runs[gone["run"]]
    assert {**kept, "seconds": 0} == {**gone, "seconds": 0}


def test_a_run_that_fails_is_recorded_and_not_chosen(data, tmp_path):
    study = completed(data, tmp_path, replace(TINY, rates=(1e30, 1e-3), seeds=1), only=["erm"])
    assert study.chosen(Cell("erm"), 1) == study.chosen(Cell("erm"), 2) == 1e-3
    assert "failed" in study.records.runs[Run(Cell("erm"), 1e30).key]
    assert all(run.cell.algorithm != "erm" for run in study.missing())


@pytest.mark.slow
def test_the_command_runs_in_a_worker_and_writes_a_page(tmp_path, monkeypatch, capsys):
    y, domain, split = (
        part.ravel() for part in np.meshgrid(range(3), range(2), ["train"] * 60 + ["val"] * 20 + ["test"] * 20)
    )
    x = np.random.default_rng(0).integers(0, 256, (len(y), 16, 16, 3), dtype=np.uint8)
    np.savez(tmp_path / "digits-mlt.npz", x=x, y=y, domain=domain, split=split)
    monkeypatch.setitem(__main__.QUICK, "cnn", replace(__main__.QUICK["cnn"], seeds=1, models=0))
    words = f"--quick --resume --setting cnn --only erm --data {tmp_path} --runs {tmp_path}/runs"
    __main__.main(words.split())
    records = Records(tmp_path / "runs" / "quick" / "cnn.jsonl")
    assert records.runs and all(" erm " in key for key in records.runs)
    assert records.runs[Run(Cell("erm"), RATES[0]).key]["spec"]["dataset"] == "digits-mlt-16-tenth.npz"
    page = (tmp_path / "runs" / "quick" / "results" / "claims.md").read_text(encoding="utf-8")
    assert "missing: " in page and str(tmp_path) not in page
    assert "cnn: " in capsys.readouterr().out


def test_prepared_images_are_means_of_two_by_two_pixels_of_every_third_sample(tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (9, 4, 6, 3), dtype=np.uint8)
    np.savez(tmp_path / "digits-mlt.npz", x=x, y=np.arange(9), classes=np.arange(2))
    with np.load(prepared(replace(TINY, every=3, halve=True), tmp_path, tmp_path / "out")) as made:
        assert made["y"].tolist() == [0, 3, 6] and len(made["classes"]) == 2
        assert made["x"].shape == (3, 2, 3, 3) and made["x"].dtype == np.uint8
        for i, row, column, channel in np.ndindex(made["x"].shape):
            square = x[3 * i, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, channel]
            assert abs(int(made["x"][i, row, column, channel]) - square.astype(float).mean()) <= 0.5
    assert prepared(replace(TINY, halve=False), tmp_path, tmp_path / "out") == tmp_path / "vectors.npz"
