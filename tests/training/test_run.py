"""A run right after training and the same folder later are the same object."""

from dataclasses import fields, replace

import numpy as np
import pytest
from tests.opened import opened

from crosstail.data import load_source, protocols
from crosstail.metrics import Answers
from crosstail.testing.easy_data import changed
from crosstail.training.fit import train_run
from crosstail.training.held_out import HeldOut
from crosstail.training.refit import refit_spec, with_estimate
from crosstail.training.resolve import resolve
from crosstail.training.run import Run

ATTRIBUTES = ("path", "result", "records", "test", "held_out", "calibration", "checksum", "dataset")


def assert_equal(one, other):
    """Every part of two attributes of a run."""
    assert type(one) is type(other)
    if isinstance(one, np.ndarray):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)
    elif isinstance(one, Answers | HeldOut):
        for field in fields(one):
            assert_equal(getattr(one, field.name), getattr(other, field.name))
    else:
        assert one == other


@pytest.fixture
def spec(tiny):
    spec = tiny([[12, 9, 4], [3, 9, 12]])
    with changed(spec.dataset) as content:
        content["groups"] = np.arange(len(content["y"])) // 2
    return resolve(spec)


def assert_same_later(run, spec):
    later = Run(run.path)
    for name in ATTRIBUTES:
        if name == "dataset":
            assert run.dataset.checksum == later.dataset.checksum
        else:
            assert_equal(getattr(run, name), getattr(later, name))
    assert later.result.spec == spec


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"algorithm": "mtl", "hparams": {}},  # which uses the domain
        {"second_stage": "retrain"},
        {"second_stage": "blend"},
        {"algorithm": "frozen", "second_stage": "blend", "hparams": {}},
        {"average": "moving"},
        {"protocol": "dg", "unseen": "0"},
        {"folds": 2, "fold": 1},
        {"select_on": "auroc"},
    ],
)
def test_a_run_that_is_read_is_the_one_that_was_trained(spec, tmp_path, changes):
    source = load_source(spec)
    spec = resolve(replace(spec, **{**changes, **({"unseen": source.domains[0]} if "unseen" in changes else {})}))
    run = train_run(spec, tmp_path / "run")
    assert run.test is not None and run.held_out is not None and len(run.records)
    assert_same_later(run, spec)
    assert_same_later(train_run(spec, tmp_path / "run"), spec)


def test_so_is_one_on_every_sample_that_has_the_held_out_samples_of_others(spec, tmp_path):
    spec = replace(spec, folds=3)
    runs = [train_run(one, tmp_path / str(one.fold)) for one in protocols.parts(spec, load_source(spec))]
    last = refit_spec([run.result for run in runs])
    final = with_estimate(train_run(last, tmp_path / "refit"), runs)
    assert len(final.held_out) == sum(len(run.held_out.test) for run in runs)
    assert_same_later(final, last)


def test_what_training_hands_over_is_not_read_again(spec, tmp_path):
    run = train_run(spec, tmp_path / "run")
    with opened() as files:
        for name in ATTRIBUTES:
            getattr(run, name)
    assert not [file for file in files if str(tmp_path) in str(file)]


def test_a_run_without_its_data_says_so(spec, tmp_path):
    train_run(spec, tmp_path / "run")
    (tmp_path / "easy.npz").unlink()
    run = Run(tmp_path / "run")
    assert run.inputs is run.dataset is None and run.result.test.pair_average is not None
    with pytest.raises(ValueError, match="its data are gone or have changed"):
        run.model()
