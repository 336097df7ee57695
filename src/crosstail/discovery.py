"""Plug-ins by file name: a package offers every file in it whose name has no leading underscore."""

import difflib
import hashlib
import importlib
import importlib.util
import pkgutil
import sys
from pathlib import Path
from types import ModuleType


def names(package: str) -> list[str]:
    """The names that a package offers, sorted.

    >>> "digits" in names("crosstail.data.benchmarks")
    True
    """
    module = importlib.import_module(package)
    return sorted(info.name for info in pkgutil.iter_modules(module.__path__) if not info.name.startswith("_"))


def find(package: str, name: str, kind: str) -> ModuleType:
    """Import a module of a package by name; for an unknown name the error suggests a similar one."""
    known = names(package)
    if name not in known:
        raise ValueError(f"unknown {kind} {name!r}: {suggestion(name, known)}")
    return importlib.import_module(f"{package}.{name}")


def load_file(path: Path) -> ModuleType:
    """Import a Python file by path; the same content is imported only once."""
    try:
        source = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    name = f"{path.stem}_{hashlib.sha256(source).hexdigest()[:16]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look their module up
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            if not isinstance(error, Exception):
                raise
            raise ValueError(f"{path}: cannot be imported ({type(error).__name__}: {error})") from error
    return sys.modules[name]


def suggestion(name: str, known: list[str]) -> str:
    """The most similar known name, or all names if none is similar.

    >>> suggestion("bodda", ["boda", "erm"]), suggestion("x", ["boda", "erm"])
    ("did you mean 'boda'?", 'there are boda, erm.')
    """
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(known)}."


def nearest(name: str, known: list[str]) -> str | None:
    """The most similar known name, or None if none is similar."""
    return next(iter(difflib.get_close_matches(name, known, n=1, cutoff=0.5)), None)
