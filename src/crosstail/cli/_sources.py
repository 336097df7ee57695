"""Facts about source files, read without importing them, because torch takes seconds."""

import ast
import re
import tomllib
from functools import cache
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
    values = (_attribute(defined, attribute) for attribute in ("family", "passes"))
    return AlgorithmSource(name, ast.get_docstring(defined) or "", *values)


def _is_documented_class(node: ast.stmt) -> bool:
    return isinstance(node, ast.ClassDef) and bool(re.search(r"\b(19|20)\d\d\b", ast.get_docstring(node) or ""))


def _attribute(defined: ast.ClassDef, attribute: str) -> Any:
    """The value of a class attribute, from the class or its first base among the algorithms."""
    for node in defined.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == attribute:
            return ast.literal_eval(node.value)
    bases = (ast.unparse(base).rpartition(".")[2] for base in defined.bases)
    return next(_attribute(_classes()[base], attribute) for base in bases if base in _classes())


@cache
def _classes() -> dict[str, ast.ClassDef]:
    """The classes that the files of the algorithms define, by name."""
    files = [file.stem for folder in discovery.folders(ALGORITHMS) for file in Path(folder).glob("*.py")]
    nodes = [node for file in files for node in discovery.parsed(ALGORITHMS, file).body]
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


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
