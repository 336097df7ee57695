"""The command that follows another, complete and ready to paste."""

import shlex
from collections.abc import Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from crosstail.data import DataSpec, DomainDataset


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


def inputs_of(spec: "DataSpec", dataset: "DomainDataset") -> list[str]:
    """Labelled data as `predict` reads them, or one of their images; empty if there is none."""
    from crosstail.data import as_inputs

    if found := as_inputs(spec.dataset, spec.columns):
        return [*found, *["--skip-broken"] * spec.skip_broken]
    root = dataset.kind.root(dataset.x)
    files = () if root is None else (root / name for name in dataset.names())
    return [str(file) for file in islice((file for file in files if file.is_file()), 1)]  # they may be in other files
