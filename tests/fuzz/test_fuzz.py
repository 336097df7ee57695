"""Bad input ends in one sentence that names the file, or is handled: never in a traceback, a hang or a wrong result.

The named cases are the classes of bad input that have once ended badly; the numbered ones are drawn at random, always
the same. `make fuzz` runs thousands of them.
"""

import io
import json
import os
import shutil
import zipfile
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.fuzz.__main__ import FAMILIES, case_of, outcome_of
from tests.fuzz._case import BAD, CLEAR, HANDLED, Case, run
from tests.fuzz._good import COMMANDS, SHORT, copy, make

from crosstail.data import BrokenImage, read_image
from crosstail.data.sources import _npz_members as npz_members
from crosstail.reports.run.duplicates import AuditFile
from crosstail.storage import read_json
from crosstail.sweeps.store import Store
from crosstail.training import RunSpec
from crosstail.training.data_facts import DataFacts
from crosstail.training.folder import RunFolder
from crosstail.training.resolve import resolve
from crosstail.workflows.fit import read_hparams

CASES = 6  # of each family; the time limit of CI does not allow more


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz") / "good"
    make(folder)
    return folder


@pytest.mark.parametrize("family", FAMILIES)
def test_drawn_at_random(good, tmp_path, family):
    bad = []
    for number in range(CASES):
        case = case_of(family, number, good)
        outcome = outcome_of(case, good, tmp_path / "case")
        if outcome.kind in BAD:
            bad.append((number, case.what, case.command, outcome))
    assert not bad


OTHERS = (None, True, -1, 2**63, 1e308, "x", "\x00", [], {}, [[None]], {"x": 1})
ERM = RunSpec(dataset="vectors.npz", algorithm="erm", backbone="mlp")
READERS = {
    "run-a/spec.json": lambda place: RunFolder(place / "run-a").spec(),
    "run-a/data.json": lambda place: RunFolder(place / "run-a").data(),
    "run-a/result.json": lambda place: RunFolder(place / "run-a").result(),
    "run-a/calibration.json": lambda place: RunFolder(place / "run-a").calibration(),
    "run-a/records.jsonl": lambda place: RunFolder(place / "run-a").records(),
    "run-a/audit.json": lambda place: read_json(place / "run-a/audit.json", AuditFile),
    "sweep-a/plans/*.json": lambda place: Store(place / "sweep-a").plans(),
    "sweep-a/data.json": lambda place: read_json(place / "sweep-a/data.json", DataFacts),
    "sweep-a/selected.json": lambda place: read_hparams(place / "sweep-a/selected.json", resolve(ERM)),
    "sweep-a/index.jsonl": lambda place: Store(place / "sweep-a").results(),
}


def changes(value):
    """The value with each of its parts in turn replaced or missing, of long lists the first and the last."""
    yield from OTHERS
    for key in value if isinstance(value, dict) else {0, len(value) - 1} if isinstance(value, list) and value else ():
        rest = value.copy()
        del rest[key]
        yield rest
        for inside in changes(value[key]):
            changed = value.copy()
            changed[key] = inside
            yield changed


@pytest.mark.parametrize("name", READERS)
def test_every_value_of_a_json_file_replaced_is_read_or_the_file_is_named(good, tmp_path, name):
    (source,) = good.glob(name)
    place = tmp_path / "place"
    shutil.copytree(good / name.partition("/")[0], place / name.partition("/")[0])
    file = place / source.relative_to(good)
    first, *lines = [file.read_bytes()] if file.suffix == ".json" else file.read_bytes().splitlines(keepends=True)
    read = refused = 0
    for changed in changes(json.loads(first)):
        file.write_bytes(b"".join((json.dumps(changed).encode() + b"\n", *lines)))
        try:
            READERS[name](place)
            read += 1
        except ValueError as error:
            assert str(file) in str(error)
            refused += 1
    assert refused or name == "sweep-a/index.jsonl", (read, refused)  # the index is rebuilt


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inside: st.lists(inside, max_size=3) | st.dictionaries(st.text(), inside, max_size=3),
    max_leaves=4,
)
WITH = {
    "predict": "predict {run} vectors.npz --json",
    "evaluate": "evaluate {run} vectors.npz --split test --json",
    "graph": "graph {run} --json --out g.csv",
    "report": "report {run} run-c --page-only",
    "export": "export {run} --out m.pt2 --format torch",
    "fit again": COMMANDS["run-a"],
    "status": "status sweep-a --json",
    "select": "select sweep-a --json",
    "report of a sweep": "report sweep-a --page-only",
    "sweep again": COMMANDS["sweep-a"],
}


@st.composite
def spoiled(draw, value):
    """The value with one of its parts, at any depth, missing or replaced by any other JSON."""
    keys = list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    if not keys or not draw(st.integers(0, 5)):
        return draw(ANY_JSON)
    key = draw(st.sampled_from(keys))
    changed = value.copy()
    if draw(st.integers(0, 9)):
        changed[key] = draw(spoiled(value[key]))
    else:
        del changed[key]
    return changed


@pytest.mark.parametrize("what", WITH)
@settings(
    max_examples=int(os.environ.get("CROSSTAIL_FUZZ", "40")),
    derandomize=True,
    deadline=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_commands_on_any_json(good, tmp_path_factory, what, data):
    """They are right, or they say in one sentence which file is wrong."""
    place = tmp_path_factory.mktemp("any") / "case"
    copy(good, place)
    top = "sweep-a" if "sweep-a" in WITH[what] else "run-a"
    files = sorted(file.relative_to(place) for file in (place / top).rglob("*.json*"))
    file = data.draw(st.sampled_from(files))
    content = (place / file).read_text()
    lines = [content] if file.suffix == ".json" else content.splitlines()
    at = data.draw(st.integers(0, len(lines) - 1))
    lines[at] = json.dumps(data.draw(spoiled(json.loads(lines[at]))))
    (place / file).write_text("\n".join(lines) + "\n")
    outcome = run(Case("", WITH[what].format(run="run-a"), (top, file.name), lambda _: None), place)
    shutil.rmtree(place.parent)
    assert outcome.kind not in BAD, outcome


def npz(command="audit new.npz --json", compressed=False, large=npz_members.LARGE, **changes):
    """The good vectors with other arrays; None leaves one out."""

    def spoil(folder):
        with np.load(folder / "vectors.npz") as file:
            arrays = {name: value for name, value in (dict(file) | changes).items() if value is not None}
        (np.savez_compressed if compressed else np.savez)(folder / "new.npz", **arrays)

    return Case("", command, ("new.npz",), spoil, during=partial(patch.object, npz_members, "LARGE", large))


def text(name, content, command):
    return Case("", command, (name,), lambda folder: (folder / name).write_text(content))


def rows(text):
    return "\n".join(
        f"photos/{d}/{c}/{i}.jpg,{d},{c}{text}" for d in ("clinic", "lab") for c in ("cat", "dog") for i in "012"
    )


def huge_header(folder):
    """An array that claims to have 10^15 rows."""
    content = io.BytesIO()
    np.save(content, np.zeros((64, 6), np.float32))
    (folder / "new.npy").write_bytes(content.getvalue().replace(b"(64, 6), }", b"(" + b"9" * 15 + b",)}", 1))


def cut_header(folder):
    """An array whose header ends within a tuple, which Python reports as a token that is missing."""
    content = io.BytesIO()
    np.save(content, np.zeros((64, 6), np.float32))
    (folder / "new.npy").write_bytes(content.getvalue().replace(b")", b" ", 1))
    with zipfile.ZipFile(folder / "new.npz", "w") as archive:
        for name in ("x", "y", "domain"):
            archive.write(folder / "new.npy", f"{name}.npy")


def deep(file):
    """Valid JSON up to the depth that a parser takes."""
    return lambda folder: (folder / file).write_bytes(b"[" * 100_000)


def without_zeros(folder):
    """A manifest beside an array of no dimensions."""
    np.save(folder / "new.npy", np.float32(1))
    (folder / "new.csv").write_text("x,domain,label\n0,a,b\n1,c,d\n")


def edited(pattern, **changes):
    """A JSON file with other values."""

    def spoil(folder):
        (file,) = folder.glob(pattern)
        file.write_text(json.dumps(json.loads(file.read_text()) | changes))

    return spoil


def without_accuracies(folder):
    """An index whose lines have the right types, but no accuracy."""
    file = folder / "sweep-a/index.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    file.write_text("".join(json.dumps([*about, summary | {"validation": {}}]) + "\n" for *about, summary in lines))


HEADER = "path,domain,label\n"
REFUSED = {
    "a spec without a backbone": Case(
        "", "graph run-a --out g.csv", ("run-a",), edited("run-a/spec.json", backbone=None)
    ),
    "biases of another number of classes": Case(
        "",
        COMMANDS["run-a"],
        ("calibration.json",),
        edited("run-a/calibration.json", uniform={"sharpness": 1.0, "bias": []}),
    ),
    "answers in the place of the data": Case(
        "", "predict run-b vectors.npz --out vectors.npz", ("vectors.npz",), lambda _: None
    ),
    "answers in the place of a manifest": text("new.csv", HEADER + rows(""), "predict run-p new.csv --out new.csv"),
    "answers in the place of a result": Case(
        "", "predict run-b vectors.npz --out run-b/result.json", ("run-b/result.json",), lambda _: None
    ),
    "a folder for the answers": Case(
        "", "predict run-b vectors.npz --out d.csv", ("d.csv is a folder",), lambda folder: (folder / "d.csv").mkdir()
    ),
    "a choice in the place of the data": Case("", "select sweep-a --out vectors.npz", ("vectors.npz",), lambda _: None),
    "a choice in the place of a sweep's file": Case(
        "", "select sweep-a --out sweep-a/data.json", ("sweep-a/data.json",), lambda _: None
    ),
    "a page in the place of the data": Case(
        "", "evaluate run-b vectors.npz --split test --out vectors.npz", ("vectors.npz",), lambda _: None
    ),
    "several machines without a launcher": Case("", f"{COMMANDS['run-b']}2 --nodes 2", ("--nodes 2",), lambda _: None),
    "an algorithm without a name": Case(
        "", f"fit vectors.npz --algorithm '' {SHORT} --out run-d", ("name of the algorithm",), lambda _: None
    ),
    "a hyperparameter after a dot": Case("", f"{COMMANDS['run-b']}2 --hp.lr 0.1", ("name=value",), lambda _: None),
    "a plan without methods": Case("", "report sweep-a", ("plans",), edited("sweep-a/plans/*.json", methods=[])),
    "a plan without domains": Case("", "select sweep-a", ("plans",), edited("sweep-a/plans/*.json", unseen=[])),
    "an array without columns": npz(x=np.zeros((152, 0), np.float32)),
    "an array without columns, mapped": npz(x=np.zeros((152, 0), np.float32), large=0),
    "an array without rows": npz(x=np.zeros((0, 6), np.float32)),
    "images without pixels": npz(x=np.zeros((152, 0, 4, 3), np.uint8)),
    "a bytes scalar": npz(y=np.bytes_(b"x")),
    "a scalar to predict": npz("predict run-b new.npz", x=np.float32(1)),
    "text to predict": npz("predict run-b new.npz", x=np.full((3, 6), "a")),
    "a missing member": npz(domain=None),
    "an array of objects": npz(y=np.array([None] * 152)),
    "images for a model of vectors": npz("evaluate run-b new.npz", x=np.zeros((152, 4, 4, 3), np.uint8)),
    "a header that claims petabytes": Case("", "predict run-b new.npy", ("new.npy",), huge_header),
    "a header that is cut short": Case("", "predict run-b new.npy", ("new.npy",), cut_header),
    "a header that is cut short, in an archive": Case("", "audit new.npz", ("new.npz",), cut_header),
    "rows of a scalar": Case("", "audit new.csv", ("new.csv", "new.npy"), without_zeros),
    "a column of row numbers and no array": text(
        "new.csv",
        "x,domain,label\n" + "\n".join(f"{i},{'ab'[i % 2]},{'cd'[i // 2 % 2]}" for i in range(12)),
        "audit new.csv",
    ),
    "a column of row numbers for the path": text(
        "new.csv",
        HEADER + "\n".join(f"{i},{'ab'[i % 2]},{'cd'[i // 2 % 2]}" for i in range(12)),
        "embed new.csv --out e.npz",
    ),
    "an empty manifest": text("new.csv", "", "audit new.csv"),
    "a manifest without rows": text("new.csv", HEADER, "predict run-p new.csv"),
    "a header of two megabytes": text(
        "new.csv", "x" * 2_000_000 + "," + HEADER + rows(",y"), "embed new.csv --out e.npz"
    ),
    "a cell of two megabytes": text(
        "new.csv", HEADER + rows("") + "\n" + "x" * 2_000_000 + ",a,b", "predict run-p new.csv"
    ),
    "a quote that is never closed": text("new.csv", '"' + HEADER + rows(""), "embed new.csv --out e.npz"),
    "a NUL in a path": text("new.csv", HEADER + rows("") + "\nph\0to.jpg,lab,cat", "audit new.csv"),
    "a path of 5,000 characters": text("new.csv", HEADER + rows("") + f"\n{'x' * 5000},lab,cat", "audit new.csv"),
    "a folder as an image": text("new.csv", HEADER + rows("") + "\nphotos,lab,cat", "embed new.csv --out e.npz"),
    "one column for two": text("new.csv", HEADER + rows(""), "audit new.csv --column domain=label"),
    "a table of one class": text("new.csv", HEADER + "photos/lab/cat/0.jpg,lab,cat", "audit new.csv"),
    "a plan without trials": Case(
        "", "status sweep-a", ("plans",), lambda folder: _replaced(folder, "sweep-a/plans/*.json", '"drawn"', '"x"')
    ),
    "a million seeds": Case(
        "",
        "status sweep-a",
        ("plans",),
        lambda folder: _replaced(folder, "sweep-a/plans/*.json", '"seeds": 2', '"seeds": 1000000'),
    ),
    "more hits than samples": Case(
        "",
        "predict run-b vectors.npz",
        ("result.json",),
        lambda folder: _replaced(folder, "run-b/result.json", '"totals": [\n', '"totals": [[0, 0, 0]], "x": [\n'),
    ),
    "a name twice": Case(
        "",
        "predict run-b vectors.npz",
        ("result.json",),
        lambda folder: _replaced(folder, "run-b/result.json", '"cat"', '"dog"'),
    ),
    "JSON that is too deep": Case(
        "", "status sweep-a", ("plans",), lambda folder: deep(next(folder.glob("sweep-a/plans/*")))(folder)
    ),
    "a result that is too deep": Case("", "predict run-b vectors.npz", ("result.json",), deep("run-b/result.json")),
    "an audit of another shape": Case(
        "", COMMANDS["run-b"], ("audit.json",), lambda folder: (folder / "run-b/audit.json").write_text("{}")
    ),
    "a plan with a list for a name": text(
        "plan.toml",
        "launcher = [1, 'x']\ndataset = 'vectors.npz'\nalgorithm = 'erm'\nout = 's'",
        "sweep --plan plan.toml",
    ),
    "an empty plan": text("plan.toml", "", "sweep --plan plan.toml"),
    "a wrong number in the hyperparameters of a file": text(
        "h.json", '{"erm": {"dropout": -1e30}}', "fit vectors.npz --algorithm erm --hparams h.json --out chosen"
    ),
    "a device that is not there": Case(
        "", f"{COMMANDS['run-b']}2 --accelerator mps", ("--accelerator mps",), lambda _: None
    ),
    "a negative seed": Case("", f"{COMMANDS['run-b']}2 --seed -1", ("seed is -1",), lambda _: None),
    "a name that is not UTF-8": Case(
        "",
        "predict run-p photos",
        ("\\xff",),
        lambda folder: (folder / "photos/lab/cat/0.jpg").rename(folder / "photos/lab/cat/\udcff.jpg"),
    ),
}


def huge_bias(folder):
    """Weights that give a log probability below what half precision can store."""
    state = torch.load(folder / "run-b/model.pt", weights_only=True)
    state["backbone.layers.0.bias"].fill_(1e30)
    torch.save(state, folder / "run-b/model.pt")


def one_domain(folder):
    """Data without a second domain, in which nothing can transfer."""
    y = np.arange(60) % 3
    x = np.random.default_rng(0).normal(size=(60, 6)) + y[:, None]
    np.savez(folder / "one.npz", x=x.astype(np.float32), y=y, domain=np.zeros(60, int))


def equal_features(folder):
    """Features without any distance between them."""
    y = np.arange(60)
    np.savez(folder / "equal.npz", x=np.ones((60, 6), np.float32), y=y % 3, domain=y // 3 % 2)


HANDLED_TOO = {
    "a graph of one domain": Case("", "graph one.npz", (), one_domain),
    "a graph of equal features": Case("", "graph equal.npz", (), equal_features),
    "the prevalence of one input": Case("", "predict run-p photos/lab/cat/0.jpg --prior estimate", (), lambda _: None),
    "more evaluations than steps": Case(
        "",
        "fit vectors.npz --algorithm erm --width 8 --steps 4 --evaluations 1000000000 --out run-d",
        (),
        lambda _: None,
    ),
    "an index without accuracies": Case("", COMMANDS["sweep-a"], (), without_accuracies),
    "weights that are huge": Case("", "evaluate run-b vectors.npz --split test", (), huge_bias),
    "records that are too deep": Case("", "audit vectors.npz --run run-b", (), deep("run-b/records.jsonl")),
    "an index that is too deep": Case("", "status sweep-a", (), deep("sweep-a/index.jsonl")),
    "a compressed member that cannot be mapped": npz(compressed=True, large=0),
}
TRAPS = {
    "a pipe": os.mkfifo,
    "a link to a device that never ends": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "a link to the folder above": lambda path: path.symlink_to("../.."),
    "a folder": Path.mkdir,
}


def _replaced(folder: Path, pattern: str, old: str, new: str) -> None:
    (file,) = folder.glob(pattern)
    before = file.read_text()
    assert old in before
    file.write_text(before.replace(old, new, 1))


@pytest.mark.parametrize("what", REFUSED)
def test_refused_by_name(good, tmp_path, what):
    copy(good, tmp_path / "case")
    outcome = run(REFUSED[what], tmp_path / "case")
    assert outcome.kind == CLEAR, outcome


@pytest.mark.parametrize("what", HANDLED_TOO)
def test_handled(good, tmp_path, what):
    copy(good, tmp_path / "case")
    outcome = run(HANDLED_TOO[what], tmp_path / "case")
    assert outcome.kind == HANDLED, outcome


@pytest.mark.parametrize("what", TRAPS)
def test_something_with_the_name_of_an_image_does_not_hang(good, tmp_path, what):
    copy(good, tmp_path / "case")
    TRAPS[what](tmp_path / "case/photos/lab/cat/z.jpg")
    assert run(Case("", "predict run-p photos --json", ("z.jpg",), lambda _: None), tmp_path / "case").kind not in BAD


@pytest.mark.parametrize(
    ("command", "classes", "limit"),
    [
        ("audit many.npz --json", 10_000, 20),
        (f"fit many.npz --algorithm erm {SHORT} --out run-n", 1_500, 20),
        pytest.param(f"fit many.npz --algorithm erm {SHORT} --out run-n", 10_000, 120, marks=pytest.mark.storm),
        pytest.param(f"fit many.npz {SHORT} --out run-n", 10_000, 180, marks=pytest.mark.storm),
    ],
)
def test_many_tiny_classes_do_not_hang(tmp_path, command, classes, limit):
    y, rng = np.tile(np.arange(classes), 3), np.random.default_rng(0)
    x = rng.normal(size=(len(y), 6)).astype(np.float32)
    np.savez(tmp_path / "many.npz", x=x, y=y, domain=np.arange(len(y)) // classes % 2)
    assert run(Case("", command, ("many.npz",), lambda _: None, limit=limit), tmp_path).kind == HANDLED


@pytest.mark.parametrize("kind", [np.longdouble, ">f4"])
def test_numbers_that_torch_does_not_take_are_converted(good, tmp_path, kind):
    copy(good, tmp_path / "case")
    np.save(tmp_path / "case/new.npy", np.ones((3, 6), kind))
    assert run(Case("", "predict run-b new.npy --json", (), lambda _: None), tmp_path / "case").kind == HANDLED


@pytest.mark.parametrize("file", ["model.pt", "predictions.pt", "known.pt", "probabilities.npz"])
def test_a_file_of_a_run_that_does_not_fit_is_named(good, tmp_path, file):
    copy(good, tmp_path / "case")
    path = tmp_path / "case/run-b" / file
    if file.endswith("npz"):
        with np.load(path) as stored:
            arrays = dict(stored)
        np.savez(path, **{**arrays, "domain": arrays["domain"] + 9})
    else:
        state = torch.load(path, weights_only=True)
        name, value = next(iter(state.items()))
        torch.save({**state, name: value[:-1] if file != "known.pt" else 3.5}, path)
    command = {"model.pt": "predict run-b vectors.npz", "known.pt": "evaluate run-b vectors.npz"}
    command["predictions.pt"] = "compare run-b run-a"
    spoiled = Case("", command.get(file, "audit vectors.npz --run run-b"), (file,), lambda _: None)
    assert run(spoiled, tmp_path / "case").kind == CLEAR


def test_a_bomb_is_refused_before_it_is_unpacked(good, tmp_path):
    copy(good, tmp_path / "case")
    case = npz(compressed=True)
    with patch.object(npz_members, "memory", return_value=1000):
        outcome = run(case, tmp_path / "case")
    assert outcome.kind == CLEAR and "memory" in outcome.detail


@pytest.mark.parametrize("number", range(3))
def test_a_file_that_vanishes_or_becomes_empty_is_named(good, tmp_path, number):
    from random import Random

    from tests.fuzz.images import _vanishing

    copy(good, tmp_path / "case")
    assert run(_vanishing(Random(number)), tmp_path / "case").kind in (HANDLED, CLEAR)


def test_weights_that_do_not_fit_are_named(good, tmp_path):
    copy(good, tmp_path / "case")
    torch.save({"conv_stem.weight": torch.zeros(1)}, tmp_path / "case/w.pth")
    command = "embed photos --weights w.pth --out e.npz"
    assert run(Case("", command, ("w.pth",), lambda _: None), tmp_path / "case").kind == CLEAR


def test_a_jpeg_whose_tail_is_zeros_is_not_intact():
    """Zeros decode to grey pixels without a word from the decoder; padding behind the end of an image is harmless."""
    rng = np.random.default_rng(0)
    for number in range(60):
        content = io.BytesIO()
        size, quality = rng.integers(40, 200, 2), int(rng.integers(30, 95))
        noise = rng.integers(0, 256, (*size, 3), np.uint8)
        Image.fromarray(noise).save(content, "JPEG", quality=quality, progressive=bool(number % 2))
        intact = content.getvalue()
        assert read_image(intact + bytes(100)).shape == noise.shape
        start = int(rng.integers(len(intact) // 2, len(intact) - 20))
        with pytest.raises(BrokenImage):
            read_image(intact[:start] + bytes(len(intact) - start))
