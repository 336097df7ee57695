"""What `from crosstail import ...` offers: stable, typed, and imported only when it is used."""

import ast
import importlib
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import crosstail

ROOT = Path(crosstail.__file__).parent


def test_the_names_are_those_that_others_rely_on():
    assert sorted(crosstail.__all__) == [
        "BoDALoss",
        "CrosstailClassifier",
        "DomainDataset",
        "PairAccuracy",
        "PairStatistics",
        "RunSpec",
        "TransferabilityGraph",
        "audit",
        "boda_loss",
        "compare",
        "demo",
        "embed",
        "evaluate",
        "export",
        "fit",
        "graph",
        "label",
        "load",
        "predict",
        "race",
        "report",
        "select",
        "sweep",
    ]
    assert set(crosstail.__all__) <= set(dir(crosstail))
    with pytest.raises(AttributeError, match="'crosstail' has no attribute 'bodda_loss'"):
        _ = crosstail.bodda_loss


def test_type_checkers_see_the_same_names():
    assert (ROOT / "py.typed").exists()
    stub = ast.parse((ROOT / "__init__.pyi").read_text(encoding="utf-8"))
    imported = [
        (node.module, alias.name) for node in stub.body if isinstance(node, ast.ImportFrom) for alias in node.names
    ]
    assert sorted(name for _, name in imported) == sorted(crosstail.__all__)
    for module, name in imported:
        assert getattr(crosstail, name) is getattr(importlib.import_module(module), name)


def cpu_seconds(first: str, then: str) -> float:
    """How long the second statement takes after the first, in a new process."""
    program = f"import time\n{first}\nbegan = time.process_time()\n{then}\nprint(time.process_time() - began)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return float(done.stdout)


def test_imports_fast():
    assert cpu_seconds("", "import crosstail, sys\nassert not {'torch', 'numpy', 'pandas'} & set(sys.modules)") < 0.3
    assert cpu_seconds("import torch", "from crosstail import BoDALoss, boda_loss") < 0.3


def test_every_package_that_is_imported_is_declared():
    """An undeclared one may be there by accident, as a dependency of another."""
    project = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    requirements = [*project["dependencies"], *(requirement for extra in extras for requirement in extra)]
    declared = {re.split(r"[\[<>=]", requirement)[0].lower().replace("_", "-") for requirement in requirements}
    imported = set()
    for file in ROOT.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module] if isinstance(node, ast.ImportFrom) and node.module else []
            imported |= {module.partition(".")[0] for module in modules}
    known = packages_distributions()
    for module in imported - {"crosstail", *sys.stdlib_module_names}:
        assert {name.lower().replace("_", "-") for name in known[module]} & declared, f"{module} is not declared"
