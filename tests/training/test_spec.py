"""A run as a value: round trip, one name for one run, and words that it does not know."""

import hashlib
import json
from dataclasses import fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
specs = st.builds(
    RunSpec,
    dataset=words,
    algorithm=words,
    labels=st.none() | st.lists(words, max_size=3).map(tuple),
    data_seed=st.integers(0, 99),
    freeze=st.booleans(),
    width=st.none() | st.integers(1, 512),
    hparams=st.dictionaries(words, st.floats(allow_nan=False) | st.integers() | words | st.booleans(), max_size=4),
    decouple=st.booleans(),
    steps=st.integers(1, 9999),
)


@given(specs)
def test_a_spec_survives_json(spec):
    again = RunSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec and again.key == spec.key


@given(specs)
def test_the_key_is_the_hash_of_the_canonical_json(spec):
    record = spec.to_json()
    for name, value in record["hparams"].items():
        if isinstance(value, int) and not isinstance(value, bool):
            record["hparams"][name] = float(value)
    text = json.dumps({name: record[name] for name in sorted(record)}, sort_keys=True, separators=(",", ":"))
    assert spec.key == hashlib.sha256(text.encode("ascii")).hexdigest()[:16]


def test_the_key_does_not_depend_on_the_order_of_the_hyperparameters_or_on_defaults():
    first = RunSpec(dataset="digits", hparams={"lr": 0.1, "nu": 0.5})
    second = RunSpec(hparams={"nu": 0.5, "lr": 0.1}, seed=0, dataset="digits", labels=None)
    assert first == second and first.key == second.key


def test_a_whole_number_is_the_same_run_with_and_without_a_point(tmp_path):
    one, same = (RunSpec(dataset="digits", algorithm="boda", hparams={"nu": v, "warmup": 3}) for v in (1, 1.0))
    assert one == same and one.key == same.key
    RunFolder(tmp_path).open(one)
    assert RunFolder(tmp_path).holds(same)
    assert (
        RunSpec(dataset="digits", hparams={"switch": True}).key != RunSpec(dataset="digits", hparams={"switch": 1}).key
    )


OTHER = {
    "dataset": "other",
    "algorithm": "boda",
    "labels": ("uniform",),
    "data_seed": 1,
    "backbone": "mlp",
    "weights": "w.pth",
    "resolution": 64,
    "freeze": True,
    "head": "linear",
    "views": 2,
    "width": 8,
    "hparams": {"lr": 0.1},
    "decouple": True,
    "average": True,
    "precision": "bf16",
    "seed": 1,
    "steps": 7,
    "batch_size": 7,
    "evaluations": 7,
    "protocol": "dg",
    "unseen": "signs",
    "skip_broken": True,
    "columns": {"domain": "site"},
    "augment": True,
}


@pytest.mark.parametrize("name", [field.name for field in fields(RunSpec)])
def test_everything_that_decides_the_figures_is_in_the_key(name):
    spec = RunSpec(dataset="digits")
    changed = replace(spec, **{name: OTHER[name]})
    assert changed.key != spec.key and changed != spec


def test_the_key_is_a_folder_name():
    assert len(RunSpec(dataset="a/b").key) == 16 and set(RunSpec(dataset="a/b").key) <= set("0123456789abcdef")


def test_labels_are_a_list_in_json_and_a_tuple_here():
    spec = RunSpec(dataset="digits", labels=("forward:50", "backward:50"))
    assert spec.to_json()["labels"] == ["forward:50", "backward:50"]
    assert RunSpec.from_json(spec.to_json()).labels == ("forward:50", "backward:50")


def test_an_unknown_word_is_named():
    with pytest.raises(ValueError, match="a run has no 'colour'; it was perhaps written by another version"):
        RunSpec.from_json({"dataset": "digits", "colour": "red"})


def test_a_spec_without_a_data_set_is_refused():
    with pytest.raises(ValueError, match="a run needs a 'dataset'"):
        RunSpec.from_json({"seed": 1})


@pytest.mark.parametrize("name", ["steps", "batch_size", "evaluations"])
@pytest.mark.parametrize("value", [0, -1])
def test_numbers_below_one_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}, expected 1 or more"):
        RunSpec(dataset="digits", **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("resolution", 0, "resolution is 0, expected 1 or more pixels"),
        ("views", -1, "views is -1, expected 0 or more"),
        ("head", "resnet", "head is 'resnet', expected mlp or linear"),
    ],
)
def test_what_makes_no_sense_is_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        RunSpec(dataset="digits", **{name: value})
