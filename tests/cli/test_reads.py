"""What `crosstail fit` reads: the bytes of a photo once or twice, and nothing that it has just written."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

from crosstail.testing import save_separable

FIT = """
import json, sys
from collections import Counter

from crosstail.data.images import files
from crosstail import cli

opened = Counter()

def note(event, arguments):
    if event == "open" and str(arguments[0]).endswith(".jpg"):
        opened[str(arguments[0])] += 1

sys.addaudithook(note)
files._KEPT = int(sys.argv[1])
try:
    cli.main(sys.argv[2:])
finally:
    print(json.dumps(opened))
"""


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Noise with random labels, so that many test samples fail and are shown on the page; one photo is a copy."""
    root, rng = tmp_path_factory.mktemp("read") / "photos", np.random.default_rng(0)
    for place in ("day/cat", "day/dog", "night/cat", "night/dog"):
        (root / place).mkdir(parents=True)
        for i in range(12):
            Image.fromarray(rng.integers(0, 255, (48, 64, 3), dtype=np.uint8)).save(root / place / f"{i}.jpg")
    (root / "day/cat/0.jpg").write_bytes((root / "night/cat/0.jpg").read_bytes())
    return root


def opened(tmp_path, photos, memory, options=""):
    """How often each photo is opened during a first fit, with this many bytes of photos kept in memory."""
    words = ["fit", str(photos), "--resolution", "32", *options.split(), "--out", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-c", FIT, str(memory), *words], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    assert len(found) == 48
    return found


FROZEN = "--steps 10 --evaluations 1"
WHOLE = "--algorithm erm --tune all --backbone timm:test_vit --weights random --steps 2 --evaluations 1 --batch-size 2"


@pytest.mark.parametrize("options", [FROZEN, WHOLE, f"{FROZEN} --skip-broken --views 1"])
def test_every_photo_is_read_once_if_the_photos_fit_in_memory(tmp_path, photos, options, monkeypatch):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "cache"))
    assert set(opened(tmp_path, photos, 1 << 20, options).values()) == {1}


def test_beyond_that_a_photo_is_read_twice_and_those_on_the_page_once_more(tmp_path, photos, monkeypatch):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path / "cache"))
    found = opened(tmp_path, photos, 0, FROZEN)
    page = (tmp_path / "run/report.html").read_text()
    shown = {path for path in found if path.removeprefix(f"{photos}/") in page}
    assert shown and all(found[path] == 2 for path in found.keys() - shown)
    assert max(found.values()) <= 4  # as a failure, and as a probable label error


READ = """
import json, os, sys

from crosstail import cli

read, out = [], os.path.abspath(sys.argv[-1])

def note(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and arguments[1][:1] == "r" and "+" not in arguments[1]:
        path = os.path.abspath(os.fsdecode(arguments[0])) if isinstance(arguments[0], str | bytes | os.PathLike) else ""
        read.append(path) if path.startswith(out + os.sep) else None

sys.addaudithook(note)
cli.main(sys.argv[1:])
print(json.dumps(read))
"""


@pytest.mark.parametrize("options", ["", "--algorithm boda --second-stage retrain", "--folds 2 --refit"])
def test_nothing_that_was_just_written_is_read(tmp_path, options):
    save_separable(tmp_path / "easy.npz", [[12, 9, 4], [3, 9, 12]])
    words = ["fit", str(tmp_path / "easy.npz"), "--steps", "20", *options.split(), "--out", str(tmp_path / "run")]
    done = subprocess.run([sys.executable, "-c", READ, *words], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout.splitlines()[-1]) == []
    assert list(tmp_path.glob("run/**/report.html"))
