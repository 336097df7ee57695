"""One file per algorithm; the file name is its name on the command line.

`boda+coral` is CORAL with BoDA's term added, and a name that ends in .py is a file written by the user.
"""

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from crosstail import discovery
from crosstail.algorithms._algorithm import Algorithm, Task
from crosstail.algorithms._alignment import Alignment
from crosstail.algorithms._catalogue import catalogue
from crosstail.algorithms._hparams import Choice, LogUniform, Uniform, draw, hp, parse, ranges
from crosstail.backbones import Backbone

__all__ = [
    "Algorithm",
    "Choice",
    "LogUniform",
    "Task",
    "Uniform",
    "build",
    "canonical",
    "catalogue",
    "draw",
    "find",
    "hp",
    "own_file",
    "parse",
    "ranges",
]


def find(name: str) -> type[Algorithm]:
    """The class of an algorithm, or of a combination such as `boda+coral`.

    >>> find("boda").__name__, find("boda+coral").__name__
    ('BoDA', 'BoDA+CORAL')
    """
    term, base = _parts(name)
    return _composed(name, _defined_by(term), _defined_by(base)) if term else _defined_by(base)


def canonical(name: str) -> str:
    """The method that a name stands for, with aliases replaced.

    >>> canonical("crt"), canonical("boda+crt"), canonical("boda")
    ('erm:retrain', 'boda+erm:retrain', 'boda')
    """
    term, base = _parts(name)
    method = _defined_by(base).alias_of or base
    return f"{term}+{method}" if term else method


def own_file(name: str) -> str:
    """The user's file in a name, or the empty string.

    >>> own_file("boda+coral"), own_file("boda+./mine.py")
    ('', './mine.py')
    """
    base = _parts(name)[1]
    return base if base.endswith(".py") else ""


def build(name: str, backbone: Backbone, task: Task, hparams: dict[str, Any] | None = None) -> Algorithm:
    """Build an algorithm by name; hyperparameters not in `hparams` have their defaults."""
    algorithm = find(name)
    trained_on = int((task.counts.sum(1) > 0).sum())
    if not trained_on:
        raise ValueError(
            "the data have no training samples: check the split column, and the number of samples per pair"
        )
    if trained_on < algorithm.min_domains:
        raise ValueError(
            f"{name} compares domains and needs {algorithm.min_domains} that have training data; the data have "
            f"{trained_on}: use an algorithm that does not, such as erm or bsoftmax"
        )
    return algorithm(backbone, task, parse(algorithm.Hparams, hparams or {}))


def _parts(name: str) -> tuple[str, str]:
    term, plus, base = name.partition("+")
    return (term, base) if plus and "/" not in term else ("", name)  # a path may contain a plus


def _defined_by(name: str) -> type[Algorithm]:
    if name.endswith(".py"):
        module = discovery.load_file(Path(name))
    else:
        module = discovery.find("crosstail.algorithms", name, "algorithm")
    classes = [value for value in vars(module).values() if isinstance(value, type) and issubclass(value, Algorithm)]
    found = [value for value in classes if value.__module__ == module.__name__]
    if len(found) != 1:
        raise ValueError(f"{name} defines {len(found)} subclasses of Algorithm, expected 1")
    return found[0]


def _composed(name: str, term: type[Algorithm], base: type[Algorithm]) -> type[Algorithm]:
    """A class with both as bases: `losses` of the term calls that of the other through `super()`."""
    if not issubclass(term, Alignment):
        raise ValueError(f"{name}: only the terms of da, boda and boda_m can be added to another algorithm")
    if issubclass(base, Alignment):
        raise ValueError(f"{name}: both have an alignment term")
    if base.alone:
        raise ValueError(f"{name}: {base.alone}")
    common = {f.name for f in fields(Algorithm.Hparams)}
    twice = sorted({f.name for f in fields(term.Hparams)} & {f.name for f in fields(base.Hparams)} - common)
    if twice:
        raise ValueError(f"{name}: both have a hyperparameter {twice[0]!r}: rename it in one of the files")
    hparams: type = dataclass(frozen=True, kw_only=True)(type("Hparams", (term.Hparams, base.Hparams), {}))
    doc = f"{term.__doc__}\n\nAdded to {base.__doc__}"
    return type(f"{term.__name__}+{base.__name__}", (term, base), {"Hparams": hparams, "__doc__": doc})
