"""Every second stage keeps the promises of crosstail.testing, on any algorithm and on hopeless features."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from crosstail import discovery, second_stages, testing
from crosstail.prediction.export import export
from crosstail.second_stages import Features, FittedStage, LinearHead
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run

NAMES = discovery.names("crosstail.second_stages")
FITTED = [name for name in NAMES if isinstance(second_stages.find(name), FittedStage)]


@pytest.mark.parametrize("check", testing.STAGE_CHECKS, ids=lambda check: check.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_every_second_stage(name, check):
    check(f"erm:{name}")


@pytest.mark.parametrize("algorithm", ["ldam", "mtl", "boda+coral", "mixup"])
@pytest.mark.parametrize("name", NAMES)
def test_on_other_classifiers_and_combinations(name, algorithm):
    testing.check_beats_chance(f"{algorithm}:{name}")


@pytest.mark.parametrize("name", FITTED)
@pytest.mark.parametrize("kind", ["constant", "zero", "duplicates", "one class", "one sample"])
def test_features_that_nothing_can_be_learnt_from_give_finite_scores(name, kind):
    y, domain = np.arange(12) % 3, np.arange(12) // 6
    z = {"constant": np.full((12, 4), 0.1), "zero": np.zeros((12, 4))}.get(kind)
    z = np.eye(4)[y] if z is None else z
    rows = {"one class": np.flatnonzero(y == 1), "one sample": np.array([7])}.get(kind, np.arange(12))
    y, domain, z = y[rows], domain[rows], z[rows].astype(np.float32)
    counts = np.zeros((2, 3), int)
    np.add.at(counts, (domain, y), 1)
    given = Features(z, y, domain, counts, classifier=LinearHead.of(np.eye(4)[:3], np.zeros(3)))
    for features in (given, replace(given, validation=given)):
        head = second_stages.find(name).fit(features)
        for known in (None, torch.from_numpy(domain)):
            assert head(torch.from_numpy(z), known).isfinite().all()


@pytest.mark.parametrize("name", FITTED)
def test_the_empty_head_has_the_shapes_of_the_fitted_one(name):
    rng = np.random.default_rng(0)
    y, domain = rng.integers(0, 4, 80), rng.integers(0, 3, 80)
    counts = np.zeros((3, 4), int)
    np.add.at(counts, (domain, y), 1)
    z = rng.normal(size=(80, 5)).astype(np.float32)
    features = Features(z, y, domain, counts, classifier=LinearHead.of(rng.normal(size=(4, 5)), np.zeros(4)))
    stage = second_stages.find(name)
    fitted, empty = stage.fit(features), stage.head(*features.sizes)
    shapes = [{key: value.shape for key, value in head.state_dict().items()} for head in (fitted, empty)]
    assert shapes[0] == shapes[1]
    empty.load_state_dict(fitted.state_dict())
    assert torch.equal(empty(torch.from_numpy(z)), fitted(torch.from_numpy(z)))


@pytest.mark.parametrize("name", FITTED)
def test_it_is_exported_to_onnx(name, tmp_path):
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 12, 5]])
    size = {"backbone": "identity", "steps": 8, "batch_size": 4, "evaluations": 1}
    run = train_run(
        RunSpec(dataset=str(tmp_path / "v.npz"), algorithm="erm", second_stage=name, **size), tmp_path / "run"
    )
    done = export(tmp_path / "run", tmp_path / "model.onnx", "onnx", dataset=run.inputs.samples)
    assert done.samples == len(run.inputs.samples.rows("test"))


@pytest.mark.parametrize("name", NAMES)
def test_on_identity_stage_one_learns_only_what_the_second_stage_needs(name, tmp_path):
    save_separable(tmp_path / "v.npz", [[30, 8, 2], [0, 12, 5]])
    size = {"backbone": "identity", "steps": 8, "batch_size": 4, "evaluations": 2}
    spec = RunSpec(dataset=str(tmp_path / "v.npz"), algorithm="erm", second_stage=name, **size)
    records = train_run(spec, tmp_path / "run").folder.records()
    needs = second_stages.find(name).needs_classifier
    assert [record.step for record in records if record.stage == 1] == ([0, 4, 8] if needs else [])
