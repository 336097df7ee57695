"""Plug-ins by file name: a package offers every file in it whose name has no leading underscore."""

import ast
import difflib
import hashlib
import importlib
import importlib.util
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

FROM_FILES = ("algorithm", "backbone", "data set", "metric", "second stage")
"""What may be a user's file."""


def names(package: str) -> list[str]:
    """The names that a package offers, sorted, without importing it: torch takes seconds."""
    return sorted(info.name for info in pkgutil.iter_modules(folders(package)) if not info.name.startswith("_"))


def folders(package: str) -> list[str]:
    """Where the files of a package are."""
    if package in sys.modules:
        return list(sys.modules[package].__path__)
    top, *below = package.split(".")
    return [str(Path(folder, *below)) for folder in importlib.import_module(top).__path__]


def known(package: str, name: str, kind: str) -> str:
    """A name as the package spells it, whatever its case; for an unknown one the error suggests a similar one.

    >>> known("crosstail.algorithms", "BoDA-M", "algorithm")
    'boda_m'
    """
    if kind in FROM_FILES and name.endswith(".py"):
        require_file(Path(name))
        return name
    if name.isidentifier() and name[0] != "_" and f"{package}.{name}" in sys.modules:
        return name  # a run asks some fifty times, and listing a package takes 2 ms
    offered = names(package)
    if (found := same_name(name, offered)) is None:
        own = f"did you mean './{name}.py', the file?" if kind in FROM_FILES and Path(f"{name}.py").is_file() else ""
        raise ValueError(f"unknown {kind} {name!r}: {own or suggestion(name, offered)}")
    return found


def find(package: str, name: str, kind: str) -> ModuleType:
    """Import a module of a package by name, whatever its case, or a user's file."""
    found = known(package, name, kind)
    return load_file(Path(found)) if found.endswith(".py") else importlib.import_module(f"{package}.{found}")


def declared(package: str, name: str, kind: str, what: str, types: Any) -> Any:
    """What a module declares, such as its METRIC; an error names a module where it is missing or of another type."""
    value = getattr(find(package, name, kind), what, None)
    if not isinstance(value, types):
        wanted = " or ".join(one.__name__ for one in (types if isinstance(types, tuple) else (types,)))
        found = "missing" if value is None else f"of type {type(value).__name__}"
        raise ValueError(f"{name}: a {kind} defines {what} ({wanted}), which is {found} here")
    return value


def docstring(package: str, name: str) -> str:
    """The docstring of a module of a package, read without importing it."""
    return ast.get_docstring(parsed(package, name)) or ""


@cache
def parsed(package: str, name: str) -> ast.Module:
    """A module of a package, read without importing it."""
    files = (Path(folder, f"{name}.py") for folder in folders(package))
    return ast.parse(next(file for file in files if file.exists()).read_text(encoding="utf-8"))


def defined(path: Path) -> dict[str, list[ast.stmt]]:
    """What a user's file defines under each name at its top level; the file is not run."""
    try:
        body = ast.parse(require_file(path)).body
    except SyntaxError as error:
        raise ValueError(f"{path}, line {error.lineno}: {error.msg}") from None
    found: dict[str, list[ast.stmt]] = {}
    for node in body:
        name = ast.unparse(node.targets[0]) if isinstance(node, ast.Assign) else getattr(node, "name", "")
        found.setdefault(name, []).append(node)
    return found


def arguments(path: Path, what: str, kind: str) -> dict[str | None, ast.expr]:
    """The arguments of `what = kind(...)` in a user's file, which is not run."""
    made = [node.value for node in defined(path).get(what, ()) if isinstance(node, ast.Assign)]
    if not made:
        raise ValueError(f"{path}: has no {what}, expected {what} = {kind}(...)")
    if len(made) > 1 or not isinstance(made[0], ast.Call):
        raise ValueError(f"{path}, line {made[-1].lineno}: expected one {what}, made by {kind}(...)")
    return {keyword.arg: keyword.value for keyword in made[0].keywords}


_LOADED: dict[str, Path] = {}
"""The users' files that were imported, by the name of their module."""


def load_file(path: Path) -> ModuleType:
    """Import a Python file by path; the same content is imported only once."""
    source = require_file(path)
    name = f"{path.stem}_{hashlib.sha256(source).hexdigest()[:16]}"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name], _LOADED[name] = module, path  # dataclasses look their module up
        try:
            spec.loader.exec_module(module)
        except BaseException as error:
            del sys.modules[name]
            if not isinstance(error, Exception):
                raise
            place = own_place(error).partition(", ")[2]
            raise ValueError(
                f"{path}: cannot be imported ({type(error).__name__}: {error}{place and f', {place}'})"
            ) from error
    return sys.modules[name]


def own_frames(error: BaseException) -> list[traceback.FrameSummary]:
    """Where an error was raised, from the first line of a user's file on; empty if none is involved."""
    walked = list(traceback.walk_tb(error.__traceback__))
    first = next((i for i, (frame, _) in enumerate(walked) if frame.f_globals.get("__name__") in _LOADED), len(walked))
    return list(traceback.StackSummary.extract(walked[first:]))


def own_place(error: BaseException) -> str:
    """The last line of a user's file that an error was raised in, such as `mine.py, line 3`; empty if there is none."""
    walked = traceback.walk_tb(error.__traceback__)
    places = [(_LOADED.get(frame.f_globals.get("__name__", "")), line) for frame, line in walked]
    return next((f"{path}, line {line}" for path, line in reversed(places) if path), "")


def require_file(path: Path) -> bytes:
    """The content of a Python file."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None


def suggestion(name: str, known: list[str]) -> str:
    """The most similar known name, or all names if none is similar.

    >>> suggestion("bodda", ["boda", "erm"]), suggestion("x", ["boda", "erm"])
    ("did you mean 'boda'?", 'there are boda, erm.')
    """
    near = nearest(name, known)
    return f"did you mean {near!r}?" if near else f"there are {', '.join(known)}."


def same_name(name: str, known: Iterable[str]) -> str | None:
    """The known name that is the same but for case and hyphens, an identical one first, or None.

    >>> same_name("PACS", ["pacs"]), same_name("b", ["B", "b"]), same_name("x", ["pacs"])
    ('pacs', 'b', None)
    """
    offered = list(known)
    return name if name in offered else next((one for one in offered if _plain(one) == _plain(name)), None)


def _plain(name: str) -> str:
    return name.casefold().replace("-", "_")


def nearest(name: str, known: list[str]) -> str | None:
    """The most similar known name, or None if none is similar."""
    plain = {_plain(one): one for one in reversed(known)}
    found = difflib.get_close_matches(_plain(name), list(plain), n=1, cutoff=0.5)
    return plain[found[0]] if found else None


def combined(name: str) -> list[str]:
    """The names in a combination; a path, which may contain a plus, ends with .py.

    >>> combined("bsoftmax+coral"), combined("boda+./a+b.py")
    (['bsoftmax', 'coral'], ['boda', './a+b.py'])
    """
    words = re.findall(r"[^+]*/.*?\.py(?=\+|$)|[^+]+", name)
    return words if "+".join(words) == name else name.split("+")


def own_files(name: str) -> list[str]:
    """The users' files in a name."""
    return [word for word in combined(name) if word.endswith(".py")]


def lazily(file: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package whose names are imported on first use, from where a file says.

    That is its stub, or itself with the imports under `if TYPE_CHECKING:`.
    """
    package = Path(file)
    imports = [node for node in ast.walk(ast.parse(package.read_text("utf-8"))) if isinstance(node, ast.ImportFrom)]
    places = {alias.name: node.module for node in imports for alias in node.names}

    def get(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package.parent.name!r} has no attribute {name!r}")
        return getattr(importlib.import_module(str(places[name])), name)

    return get, lambda: sorted(places)
