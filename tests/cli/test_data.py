"""crosstail data: sheets within 80 columns, a check that fails with 1, wrong input that fails with 2."""

import json
import shlex
import zipfile

import numpy as np
import pytest
from PIL import Image

from crosstail import discovery
from crosstail.data.benchmarks import pacs
from crosstail.data.benchmarks._sheet import Archive, DataSheet

NAMES = discovery.names("crosstail.data.benchmarks")


@pytest.fixture
def run(crosstail, monkeypatch):
    """Run crosstail data without a folder of benchmarks."""
    monkeypatch.delenv("CROSSTAIL_DATA", raising=False)
    return lambda *words: crosstail(shlex.join(["data", *map(str, words)]))


def save(path, seed):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.random.default_rng(seed).integers(0, 256, (8, 8, 3), dtype=np.uint8)).save(path)


@pytest.fixture
def small(monkeypatch):
    """PACS with two images of each pair and an archive without an address."""
    counts = ((2,) * 7,) * 4
    changed = {"counts": counts, "domain_counts": (), "archives": (Archive(file="PACS.zip", mirrors=()),)}
    fields = {name: getattr(pacs.SHEET, name) for name in DataSheet.__struct_fields__} | changed
    monkeypatch.setattr(pacs, "SHEET", DataSheet(**fields))


def make(root):
    pairs = [(domain, kind) for domain in pacs.SHEET.domains for kind in pacs.SHEET.classes]
    for n, (domain, kind) in enumerate(pairs):
        for i in range(2):
            save(root / domain / kind / f"{i}.jpg", 2 * n + i)
    return root


def is_narrow(text):
    return all(len(line) <= 80 or line.strip().startswith(("http://", "https://")) for line in text.splitlines())


@pytest.mark.parametrize("name", NAMES)
def test_sheet(run, name):
    code, out, err = run(name)
    assert code == 0 and is_narrow(out) and err == ""
    sheet = discovery.find("crosstail.data.benchmarks", name, "benchmark").SHEET
    assert out.startswith(sheet.title)
    for archive in sheet.archives:
        assert archive.file in out and all(mirror in out for mirror in archive.mirrors)
        assert archive.checksum is None or archive.checksum[1] in out
    for word in ("licence", "citation", "domains", "classes", "training", "shots"):
        assert f"\n{word}" in out
    assert " ".join(sheet.about.split()) in " ".join(out.split())
    code, out, _ = run(name, "--json")
    assert json.loads(out)["classes"] == list(sheet.classes)


def test_sheet_with_a_folder_says_what_to_type(run):
    _, out, _ = run("terra_incognita", "--root", "my/folder")
    for line in (
        "  crosstail data terra_incognita --root my/folder --download",
        "  crosstail data terra_incognita --root my/folder --check",
        "  crosstail fit terra_incognita:my/folder --out run",
        "  my/folder/location_100/bird/*",
    ):
        assert line in out.splitlines()


def test_check_of_a_right_folder(run, small, tmp_path, monkeypatch):
    root = make(tmp_path / "pacs")
    code, out, _ = run("pacs", "--root", root, "--check")
    assert code == 0 and is_narrow(out.replace(str(tmp_path), ""))
    assert "56 images, all images read: ok" in " ".join(out.split())
    monkeypatch.setenv("CROSSTAIL_DATA", str(tmp_path))
    code, out, _ = run("pacs", "--check", "--quick", "--json")
    report = json.loads(out)
    assert code == 0 and report["ok"] and report["images"] == 56


def test_check_of_a_wrong_folder(run, small, tmp_path):
    root = make(tmp_path)
    (root / "art_painting").rename(root / "Art Painting")
    (root / "photo/dog/0.jpg").write_bytes(b"")
    (root / "sketch/horse/0.jpg").unlink()
    code, out, _ = run("pacs", "--root", root, "--check")
    assert code == 1
    lines = [line.rstrip() for line in out.splitlines()]
    assert "! found 'Art Painting', expected 'art_painting': rename it" in lines
    assert "! sketch / horse: images 1, expected 2" in lines
    assert lines[lines.index("! 1 image cannot be read") + 1] == "  photo/dog/0.jpg: is empty"
    assert "3 problems" in out.splitlines()[-1]
    code, out, _ = run("pacs", "--root", root, "--check", "--json")
    assert code == 1 and [finding["kind"] for finding in json.loads(out)["problems"]] == ["folder", "count", "broken"]


def test_file_put_there_by_hand_is_unpacked_and_checked(run, small, tmp_path):
    make(tmp_path / "made")
    (tmp_path / "root").mkdir()
    with zipfile.ZipFile(tmp_path / "root/PACS.zip", "w") as file:
        for path in (tmp_path / "made").rglob("*.jpg"):
            file.write(path, f"kfold/{path.relative_to(tmp_path / 'made')}")
    code, out, err = run("pacs", "--root", tmp_path / "root", "--download", "--check")
    assert code == 0 and "56 images" in " ".join(out.split())
    assert "PACS.zip: already there, not verified" in err
    code, out, err = run("pacs", "--root", tmp_path / "root", "--download")
    assert code == 0 and "already unpacked" in err and out.startswith("Next: crosstail data pacs --root")


def test_file_that_cannot_be_fetched(run, small, tmp_path):
    code, out, err = run("pacs", "--root", tmp_path, "--download")
    assert code == 1 and out == ""
    assert "PACS.zip" in err and str(tmp_path) in err and "Traceback" not in err


@pytest.mark.parametrize(("arguments", "message"), [
    (["pac"], "unknown data set 'pac': did you mean 'pacs'?"),
    (["--check"], "NAME is missing"),
    (["pacs", "--quick"], "--check"),
    (["pacs", "--check"], "--root, or set CROSSTAIL_DATA"),
    (["pacs", "--download"], "--root, or set CROSSTAIL_DATA"),
    (["pacs", "--check", "--root", "nowhere"], "nowhere: "),
    (["digits", "--check"], "digits is "),
])  # fmt: skip
def test_wrong_input(run, arguments, message):
    code, out, err = run(*arguments)
    assert code == 2 and out == "" and message in " ".join(err.split())


def test_help_has_an_example(run):
    code, out, _ = run("--help")
    assert code == 0 and "Example: crosstail data pacs --root pacs --download --check" in out
