"""The command that follows another, complete and ready to paste."""

import shlex
from collections.abc import Iterable
from typing import Any

from rich.console import Console


def pasted(verb: str, *words: Any) -> str:
    """A command of ours, quoted for the shell."""
    return shlex.join(["crosstail", verb, *(str(word) for word in words)])


def say_all(console: Console, label: str, lines: Iterable[str], *, wrap: bool = False) -> None:
    """Print lines of one kind, such as notes; without `wrap`, a path stays whole."""
    for line in lines:
        console.print(f"{label}: {line}", markup=False, highlight=False, soft_wrap=not wrap)


def say_next(console: Console, verb: str, *words: Any) -> None:
    """Print the command that follows."""
    console.print(f"Next: {pasted(verb, *words)}", markup=False, highlight=False, soft_wrap=True)
