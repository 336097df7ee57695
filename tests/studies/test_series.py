"""A small series on vectors: which runs are executed and recorded, and none is repeated."""

import json
from dataclasses import replace

import numpy as np
import pytest
from studies.paper_claims import digits
from studies.paper_claims.records import Records, spec_of
from studies.paper_claims.series import Bench, chosen, plan_of, search

from crosstail.sweep.launchers._launcher import Resources, launcher
from crosstail.sweep.store import Store
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import fit
from crosstail.training.folder import RunFolder

SIZES = {"width": 8, "steps": 12, "batch_size": 4, "evaluations": 3, "freeze": False, "augment": False}
SHARED = RunSpec(dataset="vectors.npz", algorithm="erm", backbone="mlp", **SIZES)
PLAN = plan_of(SHARED, ("erm:retrain", "boda:retrain"), (None,), trials=2, seeds=2)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    path = tmp_path_factory.mktemp("data") / "vectors.npz"
    save_separable(path, [[30, 8, 2], [3, 9, 25]])
    return path


def bench(data, folder, records):
    store = Store(folder)
    return Bench(data, store, launcher("inline", store, Resources()), records)


@pytest.fixture(scope="module")
def done(data, tmp_path_factory):
    """A search to its end."""
    folder = tmp_path_factory.mktemp("search")
    made = bench(data, folder / "runs", Records(folder / "records.jsonl"))
    search(made, PLAN, look=True)
    return made


def test_every_trial_and_the_chosen_under_all_seeds_are_in_the_records(done):
    expected = {
        spec.key for entry in PLAN.methods for hparams in PLAN.drawn[entry] for spec in PLAN.runs(entry, hparams)
    }
    for entry in PLAN.methods:
        for stage in (1, 2):
            best = max(PLAN.drawn[entry], key=lambda h: done.records.validation(stage)[PLAN.runs(entry, h)[0].key])
            finals = [spec.key for specs in PLAN.finals(entry, best) for spec in specs]
            assert [key for keys in chosen(PLAN, entry, stage, done.records).finals() for key in keys] == finals
            assert all("bound" in done.records.runs[key] for key in finals)
            expected |= set(finals)
    assert set(Records(done.records.file).runs) == expected


def test_a_record_is_the_run_without_its_machine(done, data):
    for key, record in done.records.runs.items():
        spec = spec_of(record)
        assert spec.key == key and spec.dataset == "vectors.npz"
        assert str(data.parent) not in json.dumps(record)
        result = RunFolder(done.store.path / "runs" / replace(spec, dataset=str(data)).key).result()
        assert record["stages"][1]["hits"] == result.test.hits
        assert record["stages"][1]["validation"] == result.validation.pair_average
        assert record["stages"][1]["step"] == result.selected_step


def test_the_first_stage_has_the_accuracies_of_a_run_without_a_second(done, data, tmp_path):
    for entry in PLAN.methods:
        (spec,) = PLAN.runs(entry, PLAN.drawn[entry][1])
        result = fit(replace(spec, dataset=str(data), second_stage=None), tmp_path / entry).result
        stage = done.records.runs[spec.key]["stages"][0]
        assert stage["hits"] == result.test.hits and stage["step"] == result.selected_step


def test_the_bound_holds_and_is_that_of_all_training_samples(done):
    looked = [record for record in done.records.runs.values() if "bound" in record]
    assert len(looked) >= 4
    for record in looked:
        for _, empirical, theoretical in record["bound"]:
            assert theoretical <= empirical + 1e-6
        assert set(record["discrepancy"]) == {"few", "medium"}  # counts from 2 to 30


def test_what_is_in_the_records_is_not_run_again(done, data, tmp_path):
    file = tmp_path / "records.jsonl"
    lines = done.records.file.read_text().splitlines()
    file.write_text("\n".join(lines[1:]) + "\n")
    again = bench(data, tmp_path / "runs", Records(file))
    search(again, PLAN, look=True)
    gone = json.loads(lines[0])
    assert [run.name for run in (tmp_path / "runs" / "runs").iterdir()] == [
        replace(spec_of(gone), dataset=str(data)).key
    ]
    results = [{**record, "seconds": 0} for record in (gone, again.records.runs[gone["key"]])]
    assert results[0] == results[1]


def test_a_run_that_fails_is_recorded_and_not_chosen(data, tmp_path):
    made = bench(data, tmp_path / "runs", Records(tmp_path / "records.jsonl"))
    wrong = {"lr": 1e30, "weight_decay": 0.0}
    plan = replace(PLAN, methods=("erm:retrain",), drawn={"erm:retrain": (wrong, {**wrong, "lr": 1e-3})})
    search(made, plan)
    choice = chosen(plan, "erm:retrain", 1, made.records)
    assert choice.trial == 1 and list(choice.failed) == [0]
    assert "failed" in made.records.runs[plan.runs("erm:retrain", wrong)[0].key]


def test_quick_does_all_of_it_and_shows_it(data, tmp_path, monkeypatch, capsys):
    network = replace(SHARED, dataset=digits.DATA, steps=4)
    tiny = replace(digits.QUICK["cnn"], network=network, seeds=1, models=2, model_steps=4)
    monkeypatch.setitem(digits.QUICK, "cnn", tiny)
    digits.main(["--quick", "--data", str(data), "--runs", str(tmp_path), "--launcher", "inline"])
    shown = capsys.readouterr().out
    for start in ("forward–backward | ", "uniform–uniform | ", "DANN | ", "BoDA | "):
        assert shown.count(f"\n| {start}") == 1
    records = Records(tmp_path / "records" / "digits-cnn.jsonl")
    for configuration in tiny.configurations:
        assert {spec.key for spec in tiny.varied(configuration)} <= set(records.runs)
    for name, values in tiny.ablations.items():
        found = tiny.ablated(name, records)
        assert list(found) == list(values)
        assert all(records.runs[spec.key]["hparams"][name] == v for v, specs in found.items() for spec in specs)
    assert {spec_of(record).algorithm for record in records.runs.values()} == {"erm", "boda", "da", "dann", "coral"}
    assert np.all([len(r["stages"]) == 2 for r in records.runs.values() if r.get("second_stage")])


def test_halved_images_are_means_of_two_by_two_pixels(tmp_path):
    x = np.random.default_rng(0).integers(0, 256, (3, 4, 6, 3), dtype=np.uint8)
    np.savez(tmp_path / "whole.npz", x=x, y=np.arange(3))
    with np.load(digits.halved(tmp_path / "whole.npz", tmp_path / "half.npz")) as made:
        assert made["y"].tolist() == [0, 1, 2] and made["x"].shape == (3, 2, 3, 3) and made["x"].dtype == np.uint8
        for i, row, column, channel in np.ndindex(made["x"].shape):
            square = x[i, 2 * row : 2 * row + 2, 2 * column : 2 * column + 2, channel]
            assert abs(int(made["x"][i, row, column, channel]) - square.astype(float).mean()) <= 0.5
