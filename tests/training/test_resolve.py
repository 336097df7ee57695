"""Defaults that depend on the data: the same from Python as from the command line, and stable once filled in."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosstail import algorithms, discovery
from crosstail.data import load
from crosstail.reports.run.command import command
from crosstail.training import RunSpec
from crosstail.training.resolve import resolve

ALIAS = [("crt", None), ("erm", "retrain")]
SPECS = st.builds(
    RunSpec,
    dataset=st.just("digits"),
    algorithm=st.sampled_from([*discovery.names("crosstail.algorithms"), "boda+coral"]),
    backbone=st.sampled_from([None, "small_cnn", "mlp", "resnet50", "efficientnet_lite0"]),
    weights=st.sampled_from([None, "random"]),
    tune=st.sampled_from([None, "none", "last", "last:1", "last:2", "all"]),
    augment=st.sampled_from([None, True, False]),
    steps=st.sampled_from([None, 7]),
    batch_size=st.sampled_from([None, 3]),
    hparams=st.sampled_from([{}, {"lr": 0.25}, {"lr": 1}]),
)


@settings(deadline=None)  # the first example imports an algorithm's file
@given(SPECS)
def test_resolving_again_changes_nothing(spec):
    once = resolve(spec)
    assert resolve(once) == once and resolve(once).key == once.key


@settings(deadline=None)
@given(SPECS)
def test_every_default_that_depends_on_the_data_is_named(spec):
    found = resolve(spec)
    for name in ("backbone", "augment", "steps", "batch_size"):
        assert getattr(found, name) is not None
        assert getattr(spec, name) in (None, getattr(found, name))
    assert (found.tune == "none") <= (found.head is not None) and found.tune == (spec.tune or found.tune).replace(
        ":1", ""
    )
    declared = algorithms.find(found.algorithm).Hparams.__dataclass_fields__
    assert set(found.hparams) == set(declared) and spec.hparams.items() <= found.hparams.items()


def test_no_label_profiles_at_all_are_the_same_run_as_uniform():
    """Without a profile, the command line would take the benchmark's."""
    none, uniform = (resolve(RunSpec(dataset="digits", labels=labels)) for labels in ((), ("uniform",)))
    assert none == uniform and "--labels uniform" in command(none, Path("run"))
    first, second = (load("digits", labels=labels) for labels in ((), ("uniform",)))
    assert np.array_equal(first.x, second.x) and np.array_equal(first.split, second.split)


def test_finetuning_from_python_has_the_learning_rate_of_the_command_line():
    """The command line once resolved the rate on its own, and Python got the one for training from scratch."""
    spec = RunSpec(dataset="digits", algorithm="erm", backbone="resnet50")
    assert resolve(spec).hparams["lr"] == 5e-5
    assert resolve(replace(spec, weights="random")).hparams["lr"] == 1e-3
    assert resolve(replace(spec, hparams={"lr": 0.01})).hparams["lr"] == 0.01


def test_an_alias_is_the_same_run():
    crt, spelled_out = (RunSpec(dataset="digits", algorithm=name, second_stage=stage) for name, stage in ALIAS)
    assert resolve(crt) == resolve(spelled_out) and resolve(crt).key == resolve(spelled_out).key


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"algorithm": "bodda"}, r"'bodda'.*'boda'"),
        ({"second_stage": "retrian"}, r"'retrian'.*'retrain'"),
        ({"hparams": {"lrr": 1}}, r"lrr"),
    ],
)
def test_a_wrong_name_is_an_error(fields, names):
    with pytest.raises(ValueError, match=names):
        resolve(RunSpec(dataset="digits", **fields))


@pytest.mark.parametrize(
    ("domain", "split", "protocol", "method"),
    [
        ([0, 0, 1, 1], None, "mdlt", "bsoftmax+coral:blend"),
        ([0, 0, 1, 1], None, "dg", "bsoftmax:blend"),  # one is left out
        ([0, 1, 2, 2], None, "dg", "bsoftmax+coral:blend"),
        (["a", "a", "a", "a"], None, "mdlt", "bsoftmax:blend"),
        ([0, 0, 1, 1], ["train", "train", "test", "test"], "mdlt", "bsoftmax:blend"),
    ],
)
def test_the_default_needs_no_more_domains_than_there_are(tmp_path, domain, split, protocol, method):
    arrays = {"x": np.zeros((4, 8, 8, 3), np.uint8), "y": [0, 1, 0, 1], "domain": domain}
    np.savez(tmp_path / "mine.npz", **arrays, **({"split": split} if split else {}))
    assert resolve(RunSpec(dataset=str(tmp_path / "mine.npz"), protocol=protocol)).method == method
