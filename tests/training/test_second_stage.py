"""A fitted second stage in a run: one evaluation, resumed, refitted, on features that need no learning."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from crosstail import second_stages
from crosstail.second_stages import FittedStage
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.model import load_model
from crosstail.training.refit import refit_spec
from crosstail.training.resolve import resolve
from crosstail.training.result import SplitAccuracy
from crosstail.training.run_data import load_inputs


@pytest.fixture
def make(tiny):
    return partial(tiny, [[30, 8, 2], [0, 12, 5]], algorithm="erm", second_stage="ncm")


def steps(folder):
    return [(record.stage, record.step) for record in folder.records()]


def test_a_fitted_stage_is_evaluated_once_after_stage_one(make, tmp_path):
    run = train_run(make(), tmp_path / "run")
    assert steps(run.folder) == [(1, 0), (1, 3), (1, 6), (1, 9), (1, 12), (2, 0)]
    first, second = run.result.selected_steps
    assert second == run.result.selected_step == 0 and first in (0, 3, 6, 9, 12)
    alone = train_run(make(second_stage=None), tmp_path / "alone")
    assert steps(alone.folder) == steps(run.folder)[:-1] and alone.result.selected_steps == [first]
    one, two = (run.folder.weights() for run in (alone, run))
    backbone = [name for name in one if name.startswith("backbone.")]
    assert backbone and all(torch.equal(one[name], two[name]) for name in backbone)


@pytest.mark.parametrize("backbone", ["identity", "mlp"])
def test_it_is_given_the_features_of_the_selected_evaluation(make, tmp_path, monkeypatch, backbone):
    given, stage = [], second_stages.find("ncm")
    spied = FittedStage(fit=lambda features: given.append(features) or stage.fit(features), head=stage.head)
    monkeypatch.setattr("crosstail.second_stages.ncm.STAGE", spied)
    run = train_run(make(backbone=backbone, width=None if backbone == "identity" else 8), tmp_path / "run")
    dataset = run.inputs.embedded()
    model = load_model(run.folder, dataset)
    (features,) = given
    for found, split in ((features, "train"), (features.validation, "val")):
        rows = dataset.rows(split)
        with torch.no_grad():
            expected = model.backbone(torch.from_numpy(dataset.x[rows])).numpy()
        np.testing.assert_allclose(np.asarray(found.z), expected, rtol=1e-5)
        np.testing.assert_allclose(np.concatenate([z for z, _, _ in found.parts()]), expected, rtol=1e-5)
        assert (found.y == dataset.y[rows]).all() and (found.domain == dataset.domain[rows]).all()
        assert (found.counts == dataset.counts("train")).all() and found.group is None
    assert features.sizes == (expected.shape[1], 2, 3)


@pytest.mark.parametrize(
    ("given", "selected_on"),
    [({}, "pair_average"), ({"protocol": "dg", "unseen": "0"}, "average"), ({"select_on": "log_loss"}, "log_loss")],
)
def test_it_selects_on_what_the_run_selects_on(make, tmp_path, monkeypatch, given, selected_on):
    seen, stage = [], second_stages.find("tau_norm")
    spied = replace(stage, fit=lambda features: seen.append(features.select_on) or stage.fit(features))
    monkeypatch.setattr("crosstail.second_stages.tau_norm.STAGE", spied)
    train_run(make(second_stage="tau_norm", **given), tmp_path / "run")
    assert seen == [selected_on]


@pytest.mark.parametrize("stage", ["ncm", "retrain"])
def test_stage_one_is_left_out_if_it_has_nothing_to_learn(make, tmp_path, stage):
    run = train_run(make(backbone="identity", width=None, second_stage=stage), tmp_path / "run")
    later = [(2, 0)] if stage == "ncm" else [(2, step) for step in (0, 3, 6, 9, 12)]
    assert steps(run.folder) == later and run.result.selected_steps[0] == 0


def test_an_interrupted_run_ends_like_one_that_was_not(make, tmp_path, monkeypatch):
    whole = train_run(make(), tmp_path / "whole")

    def broken(*_, **__):
        raise KeyboardInterrupt

    for place in ("crosstail.second_stages.ncm.class_means", "crosstail.training.fit.make_result"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(place, broken)
            train_run(make(), tmp_path / "stopped")
    again = train_run(make(), tmp_path / "stopped")
    assert steps(again.folder) == steps(RunFolder(tmp_path / "stopped")) == steps(whole.folder)
    for name, value in whole.folder.weights().items():
        assert torch.equal(again.folder.weights()[name], value)
    assert again.result.test == whole.result.test


def test_the_final_model_on_every_sample_has_no_validation_samples(make, tmp_path, monkeypatch):
    first = train_run(resolve(make()), tmp_path / "run")
    spec = refit_spec([first.result])
    assert spec.stop_at == (first.result.selected_steps[0], 0)
    final = train_run(spec, tmp_path / "final")
    assert final.result.selected_steps == list(spec.stop_at)
    assert np.sum(final.result.counts) == len(load_inputs(spec).samples)


def test_a_fitted_stage_has_no_steps_to_stop_at(make):
    with pytest.raises(ValueError, match="--stop-at is 3 for stage 2 of erm:ncm"):
        resolve(make(stop_at=(6, 3)))


def test_averaged_weights_are_those_of_stage_one(make, tmp_path):
    run = train_run(make(average="moving"), tmp_path / "run")
    dataset = run.inputs.embedded()
    model = load_model(run.folder, dataset)
    assert run.result.raw is None and run.folder.records()[-1].averaged is None
    rows = dataset.rows("test")
    with torch.no_grad():
        said = model(torch.from_numpy(dataset.x[rows])).argmax(1).numpy()
    assert run.result.test.hits == SplitAccuracy.of(run.result.test.pairs()).hits
    assert sum(map(sum, run.result.test.hits)) == (said == dataset.y[rows]).sum()
