"""The command that follows another, complete and ready to paste."""

import re
import shlex
from collections.abc import Mapping
from itertools import chain, count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.console import Console

if TYPE_CHECKING:
    from crosstail.data import DomainDataset


def pasted(verb: str, *words: Any) -> str:
    """A command of ours, quoted for the shell."""
    return shlex.join(["crosstail", verb, *(str(word) for word in words)])


def say_next(console: Console, verb: str, *words: Any) -> None:
    """Print the command that follows."""
    console.print(f"Next: {pasted(verb, *words)}", markup=False, highlight=False, soft_wrap=True)


def free(name: str) -> Path:
    """This name in the working folder, or with a number if it is taken, so that the command does not meet other work.

    >>> free("no-such-run").name
    'no-such-run'
    """
    path = Path(name)
    numbered = (path.with_stem(f"{path.stem}-{number}") for number in count(2))
    return next(one for one in chain([path], numbered) if not one.exists())


def inputs_of(source: str, dataset: "DomainDataset", columns: Mapping[str, str]) -> list[str]:
    """Labelled data as `predict` reads them: a file or folder, and where their sites are if it says; or nothing."""
    from crosstail.data import ImageFiles

    path = Path(source)
    if path.suffix.lower() == ".npz":
        return [source]
    if not isinstance(dataset.x, ImageFiles):
        return []
    if path.suffix.lower() == ".csv" and "path" in (header := _header(path)):
        site = columns.get("domain", "domain")
        return [source, *(["--site", f"column:{site}"] if site in header else ())]
    files = (Path(dataset.x.root, name) for name in dataset.x.paths())
    first = next((file for file in files if file.is_file()), None)  # none if the images are inside other files
    return [] if first is None else [source if path.is_dir() else str(first)]


def _header(file: Path) -> list[str]:
    """The names of the columns of a table, whatever separates them."""
    with file.open(encoding="utf-8-sig") as lines:
        return [name.strip().strip('"') for name in re.split("[,;\t]", lines.readline())]
