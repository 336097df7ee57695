"""Bad input ends in one sentence that names the file, or is handled: never in a traceback, a hang or a wrong result.

The named cases are the classes of bad input that have once ended badly; the numbered ones are drawn at random, always
the same. `make fuzz` runs thousands of them.
"""

import io
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from PIL import Image
from tests.fuzz.__main__ import FAMILIES, case_of, outcome_of
from tests.fuzz._case import BAD, CLEAR, HANDLED, Case, run
from tests.fuzz._good import COMMANDS, copy, make

from crosstail.data import BrokenImage, read_image
from crosstail.data.sources import npz_members

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


def without_zeros(folder):
    """A manifest beside an array of no dimensions."""
    np.save(folder / "new.npy", np.float32(1))
    (folder / "new.csv").write_text("x,domain,label\n0,a,b\n1,c,d\n")


HEADER = "path,domain,label\n"
REFUSED = {
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
    "rows of a scalar": Case("", "audit new.csv", ("new.csv", "new.npy"), without_zeros),
    "an empty manifest": text("new.csv", "", "audit new.csv"),
    "a manifest without rows": text("new.csv", HEADER, "predict run-p new.csv"),
    "a header of two megabytes": text(
        "new.csv", "x" * 2_000_000 + "," + HEADER + rows(",y"), "embed new.csv --out e.npz"
    ),
    "a cell of two megabytes": text(
        "new.csv", HEADER + rows("") + "\n" + "x" * 2_000_000 + ",a,b", "predict run-p new.csv"
    ),
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
    "an audit of another shape": Case(
        "", COMMANDS["run-b"], ("audit.json",), lambda folder: (folder / "run-b/audit.json").write_text("{}")
    ),
    "a plan with a list for a name": text(
        "plan.toml",
        "launcher = [1, 'x']\ndataset = 'vectors.npz'\nalgorithm = 'erm'\nout = 's'",
        "sweep --plan plan.toml",
    ),
    "an empty plan": text("plan.toml", "", "sweep --plan plan.toml"),
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


@pytest.mark.parametrize("kind", [np.longdouble, ">f4"])
def test_numbers_that_torch_does_not_take_are_converted(good, tmp_path, kind):
    copy(good, tmp_path / "case")
    np.save(tmp_path / "case/new.npy", np.ones((3, 6), kind))
    assert run(Case("", "predict run-b new.npy --json", (), lambda _: None), tmp_path / "case").kind == HANDLED


@pytest.mark.parametrize("file", ["model.pt", "predictions.pt", "known.pt", "probabilities.npz"])
def test_a_file_of_a_run_that_does_not_fit_is_named(good, tmp_path, file):
    import torch

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
    spoiled = Case("", command.get(file, "audit vectors.npz --run run-b"), (file,), lambda _: None)
    assert run(spoiled, tmp_path / "case").kind == CLEAR


def test_compressed_members_are_read_although_they_cannot_be_mapped(good, tmp_path):
    copy(good, tmp_path / "case")
    assert run(npz(compressed=True, large=0), tmp_path / "case").kind == HANDLED


def test_a_bomb_is_refused_before_it_is_unpacked(good, tmp_path):
    copy(good, tmp_path / "case")
    case = npz(compressed=True)
    with patch.object(npz_members, "_memory", return_value=1000):
        outcome = run(case, tmp_path / "case")
    assert outcome.kind == CLEAR and "memory" in outcome.detail


@pytest.mark.parametrize("number", range(3))
def test_a_file_that_vanishes_or_becomes_empty_is_named(good, tmp_path, number):
    from random import Random

    from tests.fuzz.images import _vanishing

    copy(good, tmp_path / "case")
    assert run(_vanishing(Random(number)), tmp_path / "case").kind in (HANDLED, CLEAR)


def test_weights_that_do_not_fit_are_named(good, tmp_path):
    import torch

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
