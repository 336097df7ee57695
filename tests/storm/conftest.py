"""Data, commands, a way to run them in processes that start at once, and what they leave when nothing disturbs them."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch
from PIL import Image
from tests.sessions import alive, gone

from crosstail.testing import save_separable

IMAGES = "fit images --backbone small_cnn --resolution 16"
COMMON = "--steps 24 --batch-size 4 --evaluations 4 --seed 1"
COMMANDS = {
    "fit vectors": f"fit vectors.npz --algorithm boda --second-stage retrain --width 8 {COMMON} --out run",
    "fit with trace": f"fit vectors.npz --algorithm boda --trace --width 8 {COMMON} --out run",
    "fit with average": f"fit vectors.npz --algorithm erm --second-stage blend --average moving {COMMON} --out run",
    "fit images": f"{IMAGES} --algorithm bsoftmax+coral --second-stage blend {COMMON} --out run",
    "fit image files with trace": f"{IMAGES} --algorithm erm --trace {COMMON} --out run",
    "embed": "embed images --backbone efficientnet_lite0 --resolution 32 --batch-size 4 --out embedded.npz",
    "race": "race vectors.npz --algorithm erm --algorithm boda --trials 2 --seeds 2 --steps 24 --workers 2 --out race",
    "predict": "predict runs/0 vectors.npz --out answers.csv",
    "report": "report runs --out report --page-only",
    "export torch": "export runs/0 --format torch --out model.pt2",
    "export onnx": "export runs/0 --out model.onnx",
}
QUICK = ("fit vectors", "report")
"""Those that CI kills; the others take seconds each."""


@pytest.fixture(scope="session")
def zygote():
    """Start a command in a folder, with a cache of its own; `wait` returns its exit code."""
    script = Path(__file__).with_name("_zygote.py")
    with subprocess.Popen(
        [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:

        def ask(**request):
            process.stdin.write(json.dumps(request) + "\n")
            process.stdin.flush()
            return int(process.stdout.readline())

        yield ask


class Command:
    """A command in a process of its own."""

    def __init__(self, ask, words, place, cache, **fault):
        self.ask, self.began = ask, time.monotonic()
        environment = {"CROSSTAIL_CACHE": str(cache), "COLUMNS": "300", "OMP_NUM_THREADS": "1"}
        self.output = place.with_name(f"{place.name}.txt")
        self.pid = ask(words=words.split(), place=str(place), environment=environment, **fault)

    def wait(self):
        """Its exit code, once all processes of its session have ended."""
        code = self.ask(wait=self.pid, seconds=120)
        assert gone(self.pid), f"processes {alive(self.pid)} go on without it"
        return code

    def kill(self, number=signal.SIGKILL):
        os.kill(self.pid, number)


@pytest.fixture(scope="session")
def started(zygote):
    def started(words, place, cache=None, **fault):
        return Command(zygote, words, place, cache or place / "cache", **fault)

    return started


@pytest.fixture(scope="session")
def ground(tmp_path_factory, started):
    """Vectors, image files, and three finished runs."""
    place = tmp_path_factory.mktemp("storm") / "ground"
    place.mkdir()
    save_separable(place / "vectors.npz", [[30, 8, 2], [0, 9, 25]])
    rng = np.random.default_rng(0)
    for domain, label, i in np.ndindex(2, 2, 10):
        file = place / f"images/d{domain}/c{label}/{i}.png"
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(rng.integers(0, 99 + 90 * label, (16, 16, 3)).astype(np.uint8)).save(file)
    for seed, algorithm in enumerate(("erm", "boda", "erm")):
        words = f"fit vectors.npz --algorithm {algorithm} --seed {seed} --width 8 --steps 12 --out runs/{seed}"
        command = started(words, place)
        assert command.wait() == 0, command.output.read_text()
    return place


@pytest.fixture
def fresh(ground, tmp_path):
    """A new copy of the ground."""
    number = iter(range(10**6))
    return lambda: shutil.copytree(ground, tmp_path / str(next(number)))


@pytest.fixture(scope="session")
def undisturbed(ground, started, tmp_path_factory):
    """What a command leaves, and the seconds that it takes, each measured once."""
    known = {}

    def undisturbed(name):
        if name not in known:
            place = shutil.copytree(ground, tmp_path_factory.mktemp("undisturbed") / "place")
            command = started(COMMANDS[name], place)
            assert command.wait() == 0, command.output.read_text()
            known[name] = outcome(place), time.monotonic() - command.began
        return known[name]

    return undisturbed


def timeless(value):
    """A value without times."""
    if isinstance(value, dict):
        return {k: timeless(v) for k, v in value.items() if k not in ("seconds", "runs_seconds")}
    return [timeless(v) for v in value] if isinstance(value, list) else value


def content(file):
    """What a file says, for comparison: pages and pictures contain times and only count as present."""
    if file.name == "index.jsonl":
        return None  # in the order in which runs ended
    if file.suffix in (".json", ".jsonl"):
        return [
            timeless(msgspec.json.decode(line))
            for line in ([file.read_bytes()] if file.suffix == ".json" else file.read_bytes().splitlines())
        ]
    if file.suffix == ".npz":
        with np.load(file) as arrays:
            return {name: arrays[name].tobytes() for name in arrays.files}
    if file.suffix == ".pt":
        return {k: v.numpy().tobytes() for k, v in torch.load(file, weights_only=True).items() if hasattr(v, "numpy")}
    return file.read_bytes() if file.suffix in (".csv", ".tex") else None


def outcome(place):
    """Every file of a folder but the cache, and what it says; no file in either is a temporary one."""
    files = {file.relative_to(place): file for file in place.rglob("*") if file.is_file()}
    left = [str(name) for name in files if ".part" in name.name or name.name.startswith(".") or name.suffix == ".tmp"]
    assert left == []
    return {str(name): content(file) for name, file in files.items() if name.parts[0] != "cache"}
