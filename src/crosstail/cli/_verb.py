"""What commands share: parameters, descriptions (from the functions in workflows/), and importing torch late."""

import ast
import gc
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from docstring_parser import parse

from crosstail import discovery

Run = Annotated[Path, Parameter(name="RUN")]
Sweep = Annotated[Path, Parameter(name="SWEEP")]
Json = Annotated[bool, Parameter(name="--json", help="Print JSON.")]


def described(command: Callable[..., None]) -> Callable[..., None]:
    """Describe a command and its arguments as the verb does, whose file is read but not imported: torch takes seconds.

    The command's own docstring has an example, and the arguments that the verb does not have or that differ.
    """
    name, own = command.__name__, parse(command.__doc__ or "")
    defined = discovery.parsed("crosstail.workflows", name).body
    verb = next(node for node in defined if isinstance(node, ast.FunctionDef) and node.name == name)
    said = parse(ast.get_docstring(verb) or "")
    given = {each.arg_name: each.description or "" for each in (*said.params, *own.params)}
    taken = [
        f"    {arg}: {' '.join(given[arg].split())}" for arg in inspect.signature(command).parameters if arg in given
    ]
    command.__doc__ = "\n".join([f"{said.description}\n\n{own.description}\n\nArgs:", *taken])
    return command


def import_torch() -> None:
    """Import torch without garbage collection: it takes a sixth less time, and what is imported stays in memory.

    Later collections leave its half a million objects out too.
    """
    if "torch" not in sys.modules:
        gc.disable()
        try:
            import torch  # noqa: F401
        finally:
            gc.freeze()
            gc.enable()
