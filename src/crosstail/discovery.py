"""The file is the registration: what a package offers is the list of its file names.

A leading underscore means machinery; every other file is a name that one can type on the command line.
"""

import difflib
import importlib
import pkgutil
from types import ModuleType


def names(package: str) -> list[str]:
    """The names that a package offers, sorted.

    >>> "digits" in names("crosstail.data.benchmarks")
    True
    """
    module = importlib.import_module(package)
    return sorted(info.name for info in pkgutil.iter_modules(module.__path__) if not info.name.startswith("_"))


def find(package: str, name: str, kind: str) -> ModuleType:
    """Import the file called `name` of a package; an unknown name lists the near ones."""
    known = names(package)
    if name not in known:
        raise ValueError(f"unknown {kind} {name!r}: {suggestion(name, known)}")
    return importlib.import_module(f"{package}.{name}")


def suggestion(name: str, known: list[str]) -> str:
    """What to type instead: the near name, or all of them where none is near.

    >>> suggestion("bodda", ["boda", "erm"]), suggestion("x", ["boda", "erm"])
    ("did you mean 'boda'?", 'there are boda, erm.')
    """
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}."
