"""crosstail label: photos to label next, and what more labels of each pair would bring."""

import csv
import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

TRAIN = "--width 8 --steps 20 --batch-size 8 --evaluations 1"


@pytest.fixture
def run(crosstail, make_photos):
    """A run on photos, and a pool with some of them, some new ones and a copy."""
    photos = make_photos(24)
    crosstail(f"fit {photos} --out run {TRAIN}").ok()
    rng, pool = np.random.default_rng(1), Path("pool")
    pool.mkdir()
    for i in range(30):
        pixels = rng.integers(0, 30, (40, 50, 3)) + 60
        Image.fromarray(pixels.astype(np.uint8)).save(pool / f"{i:02}.jpg")
    shutil.copy(pool / "00.jpg", pool / "copy.jpg")
    shutil.copy(next(Path(photos).rglob("*.jpg")), pool / "used.jpg")
    return "run"


def rows(file):
    with Path(file).open(encoding="utf-8") as stream:
        return list(csv.DictReader(stream))


def test_inputs_are_drawn_once_without_those_of_the_run_and_pairs_have_gains(crosstail, run):
    done = crosstail(f"label pool --run {run} --site day --budget 12 --out next.csv --json").ok()
    found, said = rows("next.csv"), json.loads(done.out)
    assert len({row["path"] for row in found}) == len(found) == 12 and {row["domain"] for row in found} == {"day"}
    assert [row["path"] for row in said["inputs"]] == [row["path"] for row in found]
    assert "1 of 32 inputs are in the data of the run" in done.err and "drawn at random" in done.err
    assert "next.html" in done.err and "image/jpeg" in Path("next.html").read_text()
    gains = [pair["gain"] for pair in said["pairs"]]
    assert gains == sorted(gains, reverse=True) and len(gains) == 4 and all(0 <= gain < 1 for gain in gains)
    assert {(pair["domain"], pair["label"]) for pair in said["pairs"]} == {
        (site, name) for site in ("day", "night") for name in ("plain", "striped")
    }
    crosstail(f"label pool --run {run} --budget 12 --seed 1 --out other.csv").ok()
    assert {row["path"] for row in rows("other.csv")} != {row["path"] for row in found}
    done = crosstail(f"label pool --run {run} --budget 999 --out all.csv").ok()
    assert len(rows("all.csv")) == 30 and "only 30 inputs are new" in done.err and "20 more labels" in done.err
    assert not {"used.jpg"} & {Path(row["path"]).name for row in rows("all.csv")}


def test_bad_input_is_named(crosstail, run, refused):
    assert "--budget is 0" in refused(f"label pool --run {run} --budget 0 --out next.csv")
    assert "next.txt" in refused(f"label pool --run {run} --out next.txt")
    assert "nothing is left to label" in refused(f"label photos --run {run} --out next.csv")
    assert not Path("next.csv").exists()
    shutil.rmtree("photos")
    done = crosstail(f"label pool --run {run} --out next.csv").ok()
    assert "without the data of the run" in " ".join(done.err.split()) and len(rows("next.csv")) == 30
