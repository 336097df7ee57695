"""Imports and calls point down only: cli → workflows → … → losses; the walk in docs/architecture.md is a real run's."""

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import FrameType

import numpy as np
import pytest
from PIL import Image

import crosstail
import crosstail.reports.run.page
import crosstail.training.fit  # before the profile starts: it slows imports down
from crosstail import cli

ROOT = Path(crosstail.__file__).parent

LAYERS = [
    {"testing"},  # may import anything
    {"cli", "sklearn", "integrations"},
    {"workflows"},
    {"reports"},
    {"sweeps"},
    {"prediction"},
    {"training"},
    {"second_stages"},
    {"algorithms"},
    {"data", "backbones", "transfer", "metrics"},
    {"losses"},
    {"ahead", "cache", "ray_actors"},
    {"storage"},
    {"literature", "machine", "pairs", "progress", "__init__"},
    {"discovery"},
]
LEVEL = {part: len(LAYERS) - i for i, layer in enumerate(LAYERS) for part in layer}
LOSSES_MAY_IMPORT = {"torch", "numpy"}


def imported(file: Path, root: Path) -> Iterator[tuple[int, str]]:
    """Line and absolute name of every import of a file, also those in functions and under TYPE_CHECKING."""
    package = [root.name, *file.relative_to(root).parent.parts]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            # `from crosstail import data` names a package by an alias; elsewhere an alias is part of its module.
            names = [f"{module}.{alias.name}" for alias in node.names] if module == root.name else [module]
            yield from ((node.lineno, name) for name in names)


def violations(root: Path) -> list[str]:
    """What breaks the rule in the package at `root`, one sentence each."""
    wrong = []
    parts = {path.stem for path in root.iterdir()}
    for file in sorted(root.rglob("*.py")):
        own = file.relative_to(root).parts[0].removesuffix(".py")
        where = file.relative_to(root).as_posix()
        if own not in LEVEL:
            wrong.append(f"{where}: {own} has no place in LAYERS")
            continue
        for line, name in imported(file, root):
            top, *rest = name.split(".")
            if top != root.name:
                if own == "losses" and top not in LOSSES_MAY_IMPORT and top not in sys.stdlib_module_names:
                    wrong.append(f"{where}:{line} imports {top}; losses need torch only")
                continue
            other = rest[0] if rest and rest[0] in parts else "__init__"
            if other != own and LEVEL.get(other, len(LAYERS) + 1) >= LEVEL[own]:
                wrong.append(f"{where}:{line} imports {other} from {own}")
    return wrong


def test_imports_point_down_only():
    assert len(list(ROOT.rglob("*.py"))) > 40
    assert violations(ROOT) == []


@pytest.fixture
def tree(tmp_path):
    """A small tree that keeps the rule."""
    files = {
        "__init__.py": "",
        "discovery.py": "import importlib",
        "testing.py": "from crosstail.cli import fit",
        "cli/__init__.py": "from crosstail.cli import fit",
        "cli/fit.py": "def fit():\n    from crosstail.training import run\n    from crosstail import data, discovery",
        "training/__init__.py": "from . import run",
        "training/run.py": "import numpy\nimport crosstail.algorithms\nfrom ..losses.boda import loss",
        "algorithms/__init__.py": "from crosstail import __version__, discovery\nfrom crosstail.backbones import mlp",
        "backbones/__init__.py": "",
        "backbones/mlp.py": "from crosstail.backbones import other\nimport timm",
        "data/__init__.py": "from crosstail.data.inner import deep",
        "data/inner/__init__.py": "from .. import arrays",
        "data/inner/deep.py": "from ...discovery import find",
        "losses/__init__.py": "import math\nimport torch\nfrom numpy.typing import NDArray",
        "losses/boda.py": "from torch import nn\nfrom .distances import d",
    }
    for name, text in files.items():
        file = tmp_path / "crosstail" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path / "crosstail"


def test_the_checker_accepts_a_tree_that_keeps_the_rule(tree):
    assert violations(tree) == []


@pytest.mark.parametrize(
    ("file", "text", "sentence"),
    [
        ("losses/boda.py", "from crosstail.data import x", "losses/boda.py:1 imports data from losses"),
        ("losses/boda.py", "import crosstail.metrics._pairs", "losses/boda.py:1 imports metrics from losses"),
        ("losses/boda.py", "\nimport pandas as pd", "losses/boda.py:2 imports pandas; losses need torch only"),
        (
            "losses/boda.py",
            "from sklearn.manifold import MDS",
            "losses/boda.py:1 imports sklearn; losses need torch only",
        ),
        ("data/arrays.py", "from crosstail.backbones import mlp", "data/arrays.py:1 imports backbones from data"),
        ("data/inner/deep.py", "from ...backbones import mlp", "data/inner/deep.py:1 imports backbones from data"),
        ("data/inner/deep.py", "from ... import training", "data/inner/deep.py:1 imports training from data"),
        ("backbones/mlp.py", "from crosstail import data", "backbones/mlp.py:1 imports data from backbones"),
        (
            "training/run.py",
            "def f():\n    from crosstail.cli import fit",
            "training/run.py:2 imports cli from training",
        ),
        (
            "algorithms/erm.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from crosstail.training import loop",
            "algorithms/erm.py:3 imports training from algorithms",
        ),
        ("discovery.py", "from crosstail.losses import boda", "discovery.py:1 imports losses from discovery"),
        ("__init__.py", "from crosstail.cli import main", "__init__.py:1 imports cli from __init__"),
        ("cli/fit.py", "from crosstail.testing import check", "cli/fit.py:1 imports testing from cli"),
        ("utils.py", "", "utils.py: utils has no place in LAYERS"),
    ],
)
def test_the_checker_finds_a_planted_violation(tree, file, text, sentence):
    (tree / "metrics").mkdir()
    (tree / file).write_text(text)
    assert violations(tree) == [sentence]


PAGE = ROOT.parents[1] / "docs" / "architecture.md"
BELOW_ALL = {"discovery", "ahead", "cache", "storage", "__init__"}  # anybody may ask these
PROGRESS = {"cli/_progress.py"}  # the one callback that climbs
SPEC = {"training/spec.py"}  # a value, which rooms below training ask as the DataSpec that it is


class Calls:
    """The calls into Crosstail of one thread: functions in the order of their first call, and stacks of rooms."""

    def __init__(self) -> None:
        self.functions = Counter[str]()
        self.stacks: dict[tuple[str, ...], str] = {}  # with the function that was called
        self._stack: list[tuple[str, ...]] = [()]

    def profile(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            self._stack.append(self._entered(frame))
        elif event == "return" and len(self._stack) > 1:
            self._stack.pop()

    def _entered(self, frame: FrameType) -> tuple[str, ...]:
        rooms, file = self._stack[-1], frame.f_code.co_filename
        if not file.startswith(f"{ROOT}/"):
            return rooms
        place = file.removeprefix(f"{ROOT}/")
        room = place.partition("/")[0].removesuffix(".py")
        called = f"{place}:{frame.f_code.co_qualname}"
        self.functions[called] += 1
        if room in BELOW_ALL or place in PROGRESS | SPEC or (rooms and rooms[-1] == room):
            return rooms
        self.stacks.setdefault((*rooms, room), called)
        return *rooms, room


def walk(folder: Path) -> None:
    """Write the calls of `crosstail fit` on a folder of images, with frozen features and a second stage."""
    rng = np.random.default_rng(0)
    for domain in ("photo", "sketch"):
        for label in ("cat", "dog"):
            place = folder / "images" / domain / label
            place.mkdir(parents=True)
            for i in range(8):
                Image.fromarray(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)).save(place / f"{i}.png")
    words = ["fit", str(folder / "images"), "--algorithm", "boda", "--second-stage", "retrain", "--resolution", "32"]
    words += ["--steps", "4", "--evaluations", "2", "--batch-size", "2", "--out", str(folder / "run")]
    found = Calls()
    sys.setprofile(found.profile)
    try:
        cli.main(words)
    finally:
        sys.setprofile(None)
    (folder / "calls.json").write_text(json.dumps([found.functions, list(found.stacks.items())]))


@pytest.fixture(scope="module")
def calls(tmp_path_factory: pytest.TempPathFactory) -> Calls:
    """The calls of a run in a process of its own: what earlier tests have left would be in the walk."""
    folder, found = tmp_path_factory.mktemp("walk"), Calls()
    code = f"import pathlib, runpy; runpy.run_path({__file__!r})['walk'](pathlib.Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
    functions, stacks = json.loads((folder / "calls.json").read_text())
    found.functions.update(functions)
    found.stacks = {tuple(rooms): name for rooms, name in stacks}
    return found


def test_no_call_stack_comes_back_to_a_room_that_it_has_left(calls: Calls) -> None:
    assert [f"{' → '.join(s)} ({name})" for s, name in calls.stacks.items() if len(set(s)) < len(s)] == []


def test_no_call_goes_up(calls: Calls) -> None:
    steps = {(a, b): name for stack, name in calls.stacks.items() for a, b in pairwise(stack)}
    assert [f"{a} → {b} ({name})" for (a, b), name in steps.items() if LEVEL[b] >= LEVEL[a]] == []


def test_the_page_tells_the_walk_as_it_is(calls: Calls) -> None:
    text = PAGE.read_text(encoding="utf-8")
    told = re.findall(r"`([a-z_/]+\.py:[\w.]+)`", text.partition("## The walk of a sample")[2].partition("\n## ")[0])
    order = list(calls.functions)
    assert len(told) > 15 and set(told) <= set(order), sorted(set(told) - set(order))
    assert sorted(told, key=order.index) == told


def test_data_are_loaded_split_and_hashed_once(calls: Calls) -> None:
    load, split = "data/sources/_load.py:load", "data/protocols/__init__.py:split"
    once = [load, split, "training/embedding.py:embed", "data/dataset.py:DomainDataset.checksum"]
    assert [calls.functions[name] for name in once] == [1, 1, 1, 1]


def test_what_is_in_memory_is_not_read_back_from_disk(calls: Calls) -> None:
    assert not {"training/folder.py:RunFolder.result", "training/predictions.py:Predictions.load"} & set(
        calls.functions
    )


def test_the_page_says_where_things_are() -> None:
    section = PAGE.read_text(encoding="utf-8").partition("## Where is")[2]
    named = re.findall(r"`([\w/]+\.py)`", section)
    assert len(named) >= 10
    assert [name for name in named if not (ROOT / name).exists() and not (ROOT.parents[1] / name).exists()] == []
