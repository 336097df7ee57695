import hashlib
from dataclasses import asdict, fields, replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosstail.storage import decode
from crosstail.training import RunSpec
from crosstail.training.data_facts import DataFacts
from crosstail.training.folder import RunFolder
from crosstail.training.spec import LATER

ASIDE = ("trace", "cache")
words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8)
specs = st.builds(
    RunSpec,
    dataset=words,
    algorithm=words,
    labels=st.none() | st.lists(words, max_size=3).map(tuple),
    data_seed=st.integers(0, 99),
    tune=st.none() | st.sampled_from(["none", "last", "last:2", "all"]),
    width=st.none() | st.integers(1, 512),
    hparams=st.dictionaries(
        words, st.floats(allow_nan=False, allow_infinity=False) | st.integers() | words | st.booleans(), max_size=4
    ),
    second_stage=st.none() | words,
    steps=st.integers(1, 9999),
)


@given(specs)
def test_a_spec_survives_json(spec):
    again = decode(msgspec.json.encode(spec), RunSpec, "spec.json")
    assert again == spec and again.key == spec.key


@given(specs)
def test_the_key_is_the_hash_of_the_canonical_json(spec):
    record = {name: value for name, value in asdict(spec).items() if name not in (*ASIDE, *LATER)}
    record["average"] = False  # as before there was a choice
    for name, value in record["hparams"].items():
        if isinstance(value, int) and not isinstance(value, bool):
            record["hparams"][name] = float(value)
    text = msgspec.json.encode({name: record[name] for name in sorted(record)}, order="sorted")
    assert spec.key == hashlib.sha256(text).hexdigest()[:16]


def test_the_key_does_not_depend_on_the_order_of_the_hyperparameters_or_on_defaults():
    first = RunSpec(dataset="digits", hparams={"lr": 0.1, "nu": 0.5})
    second = RunSpec(hparams={"nu": 0.5, "lr": 0.1}, seed=0, dataset="digits", labels=None)
    assert first == second and first.key == second.key


def test_a_whole_number_is_the_same_run_with_and_without_a_point(tmp_path):
    one, same = (RunSpec(dataset="digits", algorithm="boda", hparams={"nu": v, "warmup": 3}) for v in (1, 1.0))
    assert one == same and one.key == same.key
    RunFolder(tmp_path).open(one, DataFacts(checksum="0", samples=1, notes=[]))
    assert RunFolder(tmp_path).holds(same)
    assert (
        RunSpec(dataset="digits", hparams={"switch": True}).key != RunSpec(dataset="digits", hparams={"switch": 1}).key
    )


OTHER = {
    "dataset": "other",
    "algorithm": "erm",
    "labels": ("uniform",),
    "data_seed": 1,
    "backbone": "mlp",
    "weights": "w.pth",
    "resolution": 64,
    "tune": "none",
    "tuned_share": 0.5,
    "head": "linear",
    "views": 2,
    "width": 8,
    "hparams": {"lr": 0.1},
    "second_stage": "retrain",
    "average": "swad",
    "precision": "bf16",
    "seed": 1,
    "steps": 7,
    "batch_size": 7,
    "evaluations": 7,
    "select_on": "worst_pair",
    "protocol": "dg",
    "unseen": "signs",
    "left_out": "inverted",
    "folds": 5,
    "fold": 2,
    "stop_at": (3,),
    "group_by": "patient[0-9]+",
    "skip_broken": True,
    "names": "merge",
    "columns": {"domain": "site"},
    "augment": True,
    "optimizer": "sgd",
    "schedule": "cosine",
    "warm_up": 7,
    "second_lr": 0.7,
}


@pytest.mark.parametrize("name", [field.name for field in fields(RunSpec) if field.name not in ASIDE])
def test_everything_that_decides_the_result_is_in_the_key(name):
    needed = {"fold": {"folds": 5}, "left_out": {"protocol": "dg", "unseen": "plain"}}
    spec = RunSpec(dataset="digits", **needed.get(name, {}))
    changed = replace(spec, **{name: OTHER[name]})
    assert changed.key != spec.key and changed != spec


def test_the_key_is_a_folder_name():
    assert len(RunSpec(dataset="a/b").key) == 16 and set(RunSpec(dataset="a/b").key) <= set("0123456789abcdef")


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b'{"dataset": "digits", "colour": "red"}', "'colour'"),
        (b'{"seed": 1}', "`dataset`"),
        (b'{"dataset": "digits", "seed": "one"}', r"\$\.seed"),
        (b'{"dataset": "digits", "labels": ["uniform", 3]}', r"\$\.labels\[1\]"),
        (b'{"dataset": "digits", "head": "resnet"}', r"\$\.head"),
        (b'{"dataset": "digits", "steps": 0}', "steps is 0"),
    ],
)
def test_a_spec_of_the_wrong_shape_names_the_file_and_the_place_inside_it(content, named):
    with pytest.raises(ValueError, match=f"^run/spec.json: .*{named}"):
        decode(content, RunSpec, "run/spec.json")


@pytest.mark.parametrize("name", ["steps", "batch_size", "evaluations"])
@pytest.mark.parametrize("value", [0, -1])
def test_numbers_below_one_are_refused(name, value):
    with pytest.raises(ValueError, match=f"{name} is {value}, expected 1 or more"):
        RunSpec(dataset="digits", **{name: value})


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("resolution", 0, "resolution is 0, expected 1 or more"),
        ("views", -1, "views is -1, expected 0 or more"),
        ("hparams", {"lr": float("inf")}, "hyperparameter lr is inf"),
        ("folds", 1, "folds is 1, expected 2 or more"),
        ("fold", 2, "--folds"),
    ],
)
def test_what_makes_no_sense_is_refused(name, value, message):
    with pytest.raises(ValueError, match=message):
        RunSpec(dataset="digits", **{name: value})


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"folds": 5, "fold": 0}, "fold is 0, expected 1 to 5"),
        ({"folds": 5, "fold": 6}, "fold is 6, expected 1 to 5"),
        ({"folds": 5, "protocol": "dg"}, "dg .* --folds"),
        ({"folds": 5, "fold": 1, "stop_at": (3,)}, "--stop-at .* --fold"),
        ({"protocol": "dg", "unseen": "a", "stop_at": (3,)}, "--stop-at .* --unseen"),
    ],
)
def test_fields_that_exclude_each_other_are_refused(fields, named):
    with pytest.raises(ValueError, match=named):
        RunSpec(dataset="digits", **fields)
