"""A source is one file: found by what it claims, and used by every verb as the others are."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from crosstail import cli, data
from crosstail.data import sources
from crosstail.sweeps.plan import make
from crosstail.training import RunSpec

INDEXED = '''
"""A folder of images with an index.json: a list of file, site and kind."""

import json
from pathlib import Path

import numpy as np

from crosstail.data import ImageFiles, as_dataset
from crosstail.data.sources import Source


def rows(source):
    return json.loads((Path(source) / "index.json").read_text())


def claims(source):
    return isinstance(source, (str, Path)) and (Path(source) / "index.json").is_file()


def load(source, root=None, **options):
    found = rows(source)
    classes, y = np.unique([row["kind"] for row in found], return_inverse=True)
    domains, domain = np.unique([row["site"] for row in found], return_inverse=True)
    x = ImageFiles(Path(source), [row["file"] for row in found])
    return as_dataset(Path(source).name, x, y, domain, tuple(classes), tuple(domains), **options)


SOURCE = Source(
    claims=claims,
    load=load,
    domains=lambda source, columns: len({row["site"] for row in rows(source)}),
    as_inputs=lambda source, columns: [str(Path(source) / row["file"]) for row in rows(source)[:2]],
    help="a folder with an index.json",
)
'''


@pytest.fixture
def indexed(tmp_path: Path, monkeypatch) -> Path:
    """A flat folder of images of two sites with an index, and a folder that adds the source."""
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "indexed.py").write_text(INDEXED)
    monkeypatch.setattr(sources, "__path__", [*sources.__path__, str(tmp_path / "own")])
    monkeypatch.setitem(sys.modules, f"{sources.PACKAGE}.indexed", None)  # it is forgotten afterwards
    monkeypatch.delitem(sys.modules, f"{sources.PACKAGE}.indexed")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scans").mkdir()
    rng, index = np.random.default_rng(0), []
    for row in range(48):
        kind = ("adult", "larva")[row % 2]
        pixels = rng.integers(0, 90, (16, 16, 3)) + 120 * (kind == "adult")
        Image.fromarray(pixels.astype(np.uint8)).save(tmp_path / "scans" / f"{row}.png")
        index.append({"file": f"{row}.png", "site": ("north", "south")[row // 24], "kind": kind})
    (tmp_path / "scans" / "index.json").write_text(json.dumps(index))
    return tmp_path


def test_without_its_file_it_is_a_folder_without_classes(indexed: Path, monkeypatch) -> None:
    assert data.load("scans").classes == ("adult", "larva")
    monkeypatch.setattr(sources, "__path__", sources.__path__[:-1])
    with pytest.raises(ValueError, match="no folder for each class"):
        data.load("scans")


def test_it_is_listed_and_suggested_for_what_nothing_claims(indexed: Path, capsys) -> None:
    cli.main(["list", "sources", "--json"])
    listed = {row["name"]: row["what"] for row in json.loads(capsys.readouterr().out)}
    assert listed["indexed"] == "A folder of images with an index.json: a list of file, site and kind."
    assert {"arrays", "benchmark", "folder", "hugging_face", "manifest", "torch_dataset"} < set(listed)
    (indexed / "notes.txt").touch()
    for wrong in ("scons", "notes.txt"):
        with pytest.raises(ValueError, match=r"Other sources: .*a folder with an index\.json"):
            data.load(wrong)


def test_what_is_known_without_loading_it_comes_from_its_file(indexed: Path) -> None:
    assert (data.count_domains("scans"), data.kind_in("scans").noun) == (2, "image")
    assert data.as_inputs("scans") == ["scans/0.png", "scans/1.png"]
    make(RunSpec(dataset="scans", backbone="small_cnn", resolution=16, steps=1), ["erm"], trials=1)


def test_options_that_sources_share_work_with_it(indexed: Path) -> None:
    (indexed / "scans" / "5.png").write_bytes(b"no image")
    found = data.load("scans", skip_broken=True, group_by="^(.)")
    assert len(found) == 47 and any("5.png" in note for note in found.notes) and found.group is not None


def test_it_is_audited_fitted_evaluated_and_predicted(indexed: Path, capsys) -> None:
    cli.main(["audit", "scans", "--json"])
    assert json.loads(capsys.readouterr().out)["domains"] == ["north", "south"]
    words = "fit scans --algorithm erm --backbone small_cnn --resolution 16 --steps 10 --evaluations 2 --out run"
    cli.main(words.split())
    capsys.readouterr()
    cli.main(["evaluate", "run", "scans", "--split", "test"])
    following = capsys.readouterr().out.splitlines()[-1]
    assert following.startswith("Next: crosstail predict run scans/0.png scans/1.png")
    assert "predict run scans/0.png scans/1.png" in (indexed / "run" / "report.html").read_text()
    cli.main(["predict", "run", "scans/0.png", "scans/1.png", "--out", "classes.csv"])
    assert len((indexed / "classes.csv").read_text().splitlines()) == 3
