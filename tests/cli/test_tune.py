"""`--tune last` on photos, from the command line: one model like any other, on a full disk, and in a sweep on Ray."""

import json
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image
from tests.training.test_resume import mounted

FIT = "fit photos --tune last --resolution 64 --steps 4 --evaluations 1 --batch-size 4"


@pytest.fixture
def tuned(crosstail, make_photos):
    make_photos(12)
    crosstail(f"{FIT} --out run").ok()


def test_a_tuned_run_is_evaluated_compared_exported_and_drawn(full_page, tuned, crosstail):
    own = json.loads(crosstail("evaluate run photos --split test --json").ok().out)
    result = json.loads(Path("run/result.json").read_text(encoding="utf-8"))
    assert own["hits"] == result["test"]["hits"]
    crosstail("fit photos --resolution 64 --out none").ok()
    assert "run" in crosstail("compare none run").ok().out
    crosstail("graph run --out graph.html").ok()
    crosstail("audit photos --out audit.html").ok()
    crosstail("export run --format torch --out model.pt2").ok()
    crosstail("predict run photos --out answers.csv").ok()
    pages = {name: Path(name, "report.html").read_text(encoding="utf-8") for name in ("run", "none")}
    assert "What tuning gained" in pages["run"] and "--tune last" in pages["none"]
    assert crosstail(f"{FIT} --out run").ok().out  # finished: shown again


def test_a_photo_that_changes_before_the_run_goes_on_is_named(crosstail, make_photos, refused):
    make_photos(12)
    crosstail(f"{FIT} --tuned-share 0.5 --out run").ok()
    for name in ("result.json", "model.pt"):
        Path("run", name).unlink()
    Image.new("RGB", (40, 40), "red").save("photos/day/plain/0.jpg")
    said = refused(f"{FIT} --tuned-share 0.5 --out run")
    assert "have changed" in said or "has changed" in said


def test_a_full_disk_is_one_line_and_the_same_command_goes_on(crosstail, make_photos, tmp_path, monkeypatch):
    make_photos(12)
    disk = tmp_path / "disk"
    if problem := mounted(disk, "60k"):
        pytest.skip(f"cannot mount a small file system here: {problem}")
    monkeypatch.setenv("CROSSTAIL_CACHE", str(disk))
    try:
        done = crosstail(f"{FIT} --cache 1GB --out run")
        said = " ".join(done.err.split("error: ")[-1].split())
        assert done.code == 1 and said.startswith("No space left on device; $CROSSTAIL_CACHE names another folder")
        subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
        crosstail(f"{FIT} --cache 1GB --out run").ok()
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.slow
@pytest.mark.skipif(find_spec("ray") is None, reason="needs Ray")
def test_a_sweep_on_ray_tunes(crosstail, make_photos, monkeypatch):
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    monkeypatch.setenv("RAY_worker_niceness", "0")
    make_photos(12)
    words = FIT.replace("fit", "sweep", 1)
    crosstail(f"{words} --algorithm bsoftmax:blend --trials 1 --seeds 2 --launcher ray --workers 2 --out sweep").ok()
    (first, *_) = Path("sweep/runs").iterdir()
    assert json.loads((first / "result.json").read_text(encoding="utf-8"))["tuned"]["tried"]
