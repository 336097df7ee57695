"""Pooled means and the blend in a run on `digits`: stored, exported, resumed, refitted, on both tracks."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from crosstail import data, second_stages
from crosstail.data import load_source, protocols
from crosstail.prediction.export import export
from crosstail.prediction.predictor import Predictor
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.model import load_model
from crosstail.training.refit import refit_spec, with_estimate
from crosstail.training.resolve import resolve

STAGES = ["pooled", "blend"]


@pytest.fixture(scope="module")
def vectors(tmp_path_factory):
    """Pixels of the digits in 3 domains as features, with a group for every two samples."""
    source = data.load("digits")
    rows = np.concatenate([source.rows(split)[::2] for split in ("train", "val", "test")])
    rows = rows[source.domain[rows] < 3]
    x = source.x[rows].reshape(len(rows), -1, 3)[:, ::7, 0].astype(np.float32)
    file = tmp_path_factory.mktemp("digits") / "digits.npz"
    named = {"y": source.y[rows], "domain": source.domain[rows], "split": source.split[rows]}
    np.savez(file, x=x, **named, groups=np.arange(len(rows)) // 2)
    return file


def spec_of(vectors, stage, **changes):
    given = {"algorithm": "erm", "backbone": "identity", "steps": 3, "batch_size": 4, "evaluations": 1}
    return resolve(RunSpec(dataset=str(vectors), second_stage=stage, **{**given, **changes}))


@pytest.fixture(scope="module", params=STAGES)
def run(request, vectors, tmp_path_factory):
    return train_run(spec_of(vectors, request.param), tmp_path_factory.mktemp("runs") / request.param)


def test_a_stored_model_predicts_the_same_on_both_tracks(run):
    dataset, stage = run.inputs.embedded(), run.result.spec.second_stage
    model = load_model(run.folder, dataset)
    assert model.uses_domain and run.result.selected_steps == [0, 0]
    rows = dataset.rows("test")
    x, domain = torch.from_numpy(dataset.x[rows]), torch.from_numpy(dataset.domain[rows])
    for known, track in ((None, run.result.test), (domain, run.result.known.test)):
        with torch.no_grad():
            said = model(x, known).argmax(1).numpy()
        hits = np.zeros_like(track.hits)
        np.add.at(hits, (dataset.domain[rows], dataset.y[rows]), said == dataset.y[rows])
        assert hits.tolist() == track.hits
        assert track.pair_average > 0.3, stage  # 10 classes
    predictor = Predictor(run.folder.path)
    with torch.no_grad():
        sharpness = float(predictor.calibration.sharpness_of(run.result.domains)[1])
        expected = (sharpness * model(x[:9], torch.full((9,), 1))).softmax(1)
    np.testing.assert_allclose(predictor.probabilities(dataset.x[rows[:9]], domain=1), expected, atol=1e-6)


@pytest.mark.parametrize(("site", "format", "name"), [("1", "onnx", "m.onnx"), (None, "torch", "m.pt2")])
def test_an_exported_file_predicts_the_same(run, tmp_path, site, format, name):
    check = export(run.folder.path, tmp_path / name, format, dataset=run.inputs.embedded(), site=site)
    assert check.samples == len(run.inputs.embedded().rows("test")) and check.largest_difference < 1e-4
    card = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert card["site"] == site and "known" in card


def test_an_interrupted_run_ends_like_one_that_was_not(run, tmp_path, monkeypatch):
    def broken(*_, **__):
        raise KeyboardInterrupt

    for place in ("crosstail.second_stages.pooled._elsewhere", "crosstail.training.fit.make_result"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(place, broken)
            train_run(run.result.spec, tmp_path / "stopped")
    again = train_run(run.result.spec, tmp_path / "stopped")
    for name, value in run.folder.weights().items():
        assert torch.equal(again.folder.weights()[name], value)
    assert again.result.test == run.result.test and again.result.known == run.result.known


@pytest.mark.parametrize("stage", STAGES)
def test_for_a_new_domain_it_is_judged_on_whole_domains(vectors, tmp_path, monkeypatch, stage):
    given, real = [], second_stages.find(stage)
    spied = replace(real, fit=lambda features: given.append(features) or real.fit(features))
    monkeypatch.setattr(f"crosstail.second_stages.{stage}.STAGE", spied)
    spec = spec_of(vectors, stage, protocol="dg")
    run = train_run(protocols.parts(spec, load_source(spec))[0], tmp_path / "run")
    assert given[0].unseen and run.result.known is None
    assert np.isfinite(run.result.test.pair_average) and run.result.test.pair_average > 0.1
    assert float(run.folder.weights()["head.elsewhere"]) == 1


@pytest.mark.parametrize("stage", STAGES)
def test_folds_and_the_final_model_on_every_sample(vectors, tmp_path, stage):
    spec = spec_of(vectors, stage, folds=2)
    runs = [train_run(one, tmp_path / str(one.fold)) for one in protocols.parts(spec, load_source(spec))]
    results = [run.result for run in runs]
    final = with_estimate(train_run(refit_spec(results), tmp_path / "final"), runs)
    hits = np.sum([result.known.test.hits for result in results], axis=0)
    assert (np.array(final.result.known.estimate.hits) == hits).all()
    assert np.sum(final.result.counts) == len(load_source(spec))


def test_groups_reach_it(vectors, tmp_path, monkeypatch):
    given, real = [], second_stages.find("pooled")
    spied = replace(real, fit=lambda features: given.append(features) or real.fit(features))
    monkeypatch.setattr("crosstail.second_stages.pooled.STAGE", spied)
    run = train_run(spec_of(vectors, "pooled"), tmp_path / "run")
    dataset = run.inputs.embedded()
    assert (given[0].group == dataset.group[dataset.rows("train")]).all()
