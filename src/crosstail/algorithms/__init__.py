"""One file per algorithm, on one screen; its name is what one types on the command line."""

from typing import Any

from crosstail import discovery
from crosstail.algorithms._algorithm import Algorithm, Task
from crosstail.algorithms._hparams import draw, parse
from crosstail.backbones import Backbone

__all__ = ["Algorithm", "Task", "build", "draw", "find", "parse"]


def find(name: str) -> type[Algorithm]:
    """The algorithm that a file defines.

    >>> find("boda").__name__
    'BoDA'
    """
    module = discovery.find("crosstail.algorithms", name, "algorithm")
    own = [value for value in vars(module).values() if isinstance(value, type) and value.__module__ == module.__name__]
    (algorithm,) = (value for value in own if issubclass(value, Algorithm))
    return algorithm


def build(name: str, backbone: Backbone, task: Task, hparams: dict[str, Any] | None = None) -> Algorithm:
    """An algorithm by its name, with its defaults where `hparams` says nothing."""
    algorithm = find(name)
    return algorithm(backbone, task, parse(algorithm.Hparams, hparams or {}))
