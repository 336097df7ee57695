"""One file per algorithm; the file name is its name on the command line.

`bsoftmax+coral` combines two, `boda@reference` is a preset, and a name that ends in .py is a file written by the user.
"""

import re
from pathlib import Path
from typing import Any

from crosstail import discovery
from crosstail.algorithms._algorithm import Algorithm, Task, WrongTerms, check_terms, unreached
from crosstail.algorithms._catalogue import catalogue
from crosstail.algorithms._combined import Parts, combine, docstrings, find_preset, with_preset
from crosstail.algorithms._hparams import Choice, LogUniform, Uniform, check_declared, draw, hp, parse, ranges, values
from crosstail.backbones import Backbone

__all__ = [
    "Algorithm",
    "Choice",
    "LogUniform",
    "Task",
    "Uniform",
    "WrongTerms",
    "build",
    "canonical",
    "catalogue",
    "check_terms",
    "docstrings",
    "draw",
    "find",
    "hp",
    "parse",
    "parse_for",
    "ranges",
    "unreached",
    "values",
]


def find(name: str) -> type[Algorithm]:
    """The class of an algorithm, a combination such as `bsoftmax+coral`, or a preset such as `boda@reference`.

    >>> find("boda").__name__, find("coral+bsoftmax").__name__, find("boda@reference").Hparams().nu
    ('BoDA', 'CORAL+BSoftmax', 0.5)
    """
    parts: Parts = {}
    for word in _words(name):
        base, _, chosen = word.partition("@")
        found = {_label(base): _defined_by(base)}
        if chosen:
            preset = find_preset(base, found[base], chosen)
            found = with_preset(preset, found | {also: _defined_by(also) for also in preset.also})
        if twice := parts.keys() & found.keys():
            raise ValueError(f"{name}: {twice.pop()} is part of it twice")
        parts |= found
    return combine(name, parts) if len(parts) > 1 else parts.popitem()[1]


def canonical(name: str) -> str:
    """The method that a name stands for: aliases are replaced, and the parts of a combination sorted."""
    words = _words(name)
    if len(words) == 1:
        return find(name).alias_of or words[0]
    find(name)
    return "+".join(sorted(words, key=lambda word: (word.endswith(".py"), word)))


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
    if algorithm.changes_maps and not backbone.maps:
        raise ValueError(
            f"{name} changes feature maps of early layers, and this backbone has none: use a convolutional one such as "
            "resnet50 or small_cnn, or mlp on vectors"
        )
    return algorithm(backbone, task, parse_for(name, hparams or {}))


def parse_for(name: str, hparams: dict[str, Any]) -> Any:
    """The hyperparameters of an algorithm; an error names it."""
    try:
        return parse(find(name).Hparams, hparams)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _words(name: str) -> list[str]:
    """The names in a combination, as their files spell them."""
    words = discovery.combined(name)
    if not words:
        raise ValueError("the name of the algorithm is empty")
    return [word if word.endswith(".py") else _spelled(word) for word in words]


def _spelled(word: str) -> str:
    base, at, preset = word.partition("@")
    return f"{discovery.known('crosstail.algorithms', base, 'algorithm')}{at}{preset.lower()}"


def _label(word: str) -> str:
    """What a part's hyperparameters are addressed by."""
    return re.sub(r"\W", "_", Path(word).stem) if word.endswith(".py") else word


def _defined_by(name: str) -> type[Algorithm]:
    module = discovery.find(__name__, name, "algorithm")
    classes = [v for v in vars(module).values() if isinstance(v, type) and v.__module__ == module.__name__]
    found = [value for value in classes if issubclass(value, Algorithm)]
    if len(found) != 1:
        nodes = discovery.defined(Path(name)) if name.endswith(".py") else {}
        lines = {own: f" (line {of[-1].lineno})" for own, of in nodes.items()}
        given = ", ".join(f"{kind.__name__}{lines.get(kind.__name__, '')}" for kind in found or classes)
        raise ValueError(
            f"{name}: defines {len(found)} subclasses of Algorithm, expected 1"
            + (f"; its classes are {given}" if given else "; it has no class at all")
            + ("" if found else ": derive one from crosstail.algorithms.erm.ERM")
        )
    if (found[0].losses, found[0].update) == (Algorithm.losses, Algorithm.update):
        raise ValueError(f"{name}: {found[0].__name__} has no losses(self, z, batch), which returns its loss terms")
    check_declared(name, found[0].Hparams)
    return found[0]
