"""Imports point down only: cli → report → … → losses, whatever the kind of import statement and wherever it stands."""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import crosstail

LAYERS = [
    {"testing"},  # may import anything
    {"cli", "sklearn"},
    {"report"},
    {"sweep"},
    {"protocols", "prediction"},
    {"training"},
    {"algorithms"},
    {"data", "backbones", "transfer", "metrics"},
    {"losses"},
    {"cache", "storage"},
    {"discovery", "__init__"},
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
    root = Path(crosstail.__file__).parent
    assert len(list(root.rglob("*.py"))) > 40
    assert violations(root) == []


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
        ("losses/boda.py", "import crosstail.metrics.pairs", "losses/boda.py:1 imports metrics from losses"),
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
