"""The example training loops run, take few extra lines for the BoDA loss, and train with it."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
NAMES = ["loop_pytorch", "loop_lightning", "loop_transformers"]
MARK = re.compile(r"^( *).*  # boda(?:, before: (.*))?$")  # an added line, or a changed one and what it was
EACH = """
import runpy, sys
for script in sys.argv[1:]:
    runpy.run_path(script, run_name="__main__")
    print("-- end --")
"""


def plain(text: str) -> tuple[str, int]:
    """The script without its marked lines, and how many they are."""
    lines, marked = [], 0
    for line in text.splitlines():
        found = MARK.match(line)
        marked += found is not None
        if found is None:
            lines.append(line)
        elif found[2]:
            lines.append(found[1] + found[2])
    return "\n".join(lines), marked


def pair_averages(scripts: list[Path], folder: Path) -> list[float]:
    """What each script says at its end, when they run in this folder, in one process: its imports take seconds."""
    paths = os.pathsep.join([str(EXAMPLES), str(ROOT / "src")])  # with torchmetrics, see tests/conftest.py
    done = subprocess.run(
        [sys.executable, "-c", EACH, *scripts],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": paths},
    )
    assert done.returncode == 0, done.stderr
    assert "Where does it fail?" in (folder / "report.html").read_text(encoding="utf-8")
    return [float(re.findall(r"pair average (\d\.\d+)", said)[-1]) for said in done.stdout.split("-- end --\n")[:-1]]


@pytest.mark.parametrize("name", [*NAMES, "ddp"])
def test_the_term_takes_at_most_15_lines(name):
    text, marked = plain((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))
    assert 0 < marked <= 15
    assert "boda" not in text.split('"""')[2].lower()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_loop_runs_and_the_term_takes_part(tmp_path, name):
    """One seed shows that the term acts and does no harm, not that it helps."""
    script = EXAMPLES / f"{name}.py"
    (tmp_path / "plain.py").write_text(plain(script.read_text(encoding="utf-8"))[0], encoding="utf-8")
    found, without = pair_averages([script, tmp_path / "plain.py"], tmp_path)
    assert found != without and min(found, without) > 0.5 and found > without - 0.05


@pytest.mark.slow
def test_the_loop_on_two_processes_counts_the_samples_of_both(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", EXAMPLES / "ddp.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(EXAMPLES), str(ROOT / "src")])},
    )
    assert done.returncode == 0, done.stderr
    average, seen = re.findall(r"pair average (\d\.\d+).*\nsamples in the statistics: (\d+)", done.stdout)[0]
    assert float(average) > 0.5 and int(seen) == 10 * 238  # of ten epochs
