"""Facts about source files, read without importing them, because torch takes seconds."""

import ast
import re
import tomllib
from pathlib import Path
from typing import Any, NamedTuple

from crosstail import discovery

ALGORITHMS, SECOND_STAGES = "crosstail.algorithms", "crosstail.second_stages"
BENCHMARKS = "crosstail.data.benchmarks"


class AlgorithmSource(NamedTuple):
    """The class of an algorithm as its file defines it."""

    name: str
    docstring: str
    family: str
    passes: float


def algorithm_source(name: str) -> AlgorithmSource:
    """The class that a file defines, with what it inherits; `family` and `passes` are literals by convention.

    >>> algorithm_source("crt")[2:]
    ('imbalance', 1.0)
    """
    defined = next(node for node in reversed(discovery.parsed(ALGORITHMS, name).body) if _is_documented_class(node))
    assert isinstance(defined, ast.ClassDef)
    values = (_attribute(name, defined, attribute) for attribute in ("family", "passes"))
    return AlgorithmSource(name, ast.get_docstring(defined) or "", *values)


def _is_documented_class(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and bool(re.search(r"\b(19|20)\d\d\b", ast.get_docstring(node) or ""))


def _attribute(module: str, defined: ast.ClassDef, attribute: str) -> Any:
    """The value of a class attribute, from the class or the first base that has it."""
    for node in defined.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == attribute:
            return ast.literal_eval(node.value)
    for base in defined.bases:
        if (found := _class(module, ast.unparse(base).rpartition(".")[2])) is not None:
            return _attribute(*found, attribute)
    raise AssertionError(f"{module}.{defined.name} has no {attribute}")


def _class(module: str, name: str) -> tuple[str, ast.ClassDef] | None:
    """A class by the name that a module has for it, and the module that defines it."""
    for node in discovery.parsed(ALGORITHMS, module).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return module, node
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ALGORITHMS):
            own, names = (node.module or "").removeprefix(ALGORITHMS).strip("."), [alias.name for alias in node.names]
            for place in [own] * (name in names) if own else names:
                if (found := _class(place, name)) is not None:
                    return found
    return None


def second_stage_kind(name: str) -> str:
    """Whether a second stage is trained or fitted.

    >>> second_stage_kind("retrain"), second_stage_kind("ncm")
    ('trained', 'fitted')
    """
    assigned = (node for node in discovery.parsed(SECOND_STAGES, name).body if isinstance(node, ast.Assign))
    made = next(node.value for node in assigned if ast.unparse(node.targets[0]) == "STAGE")
    assert isinstance(made, ast.Call)
    return ast.unparse(made.func).removesuffix("Stage").lower()


def data_sheet(name: str) -> dict[str, Any]:
    """The data sheet of a benchmark."""
    files = (Path(folder, f"{name}.toml") for folder in discovery.folders(BENCHMARKS))
    return tomllib.loads(next(file for file in files if file.exists()).read_text(encoding="utf-8"))
