"""Sources of data: one file each, found by its name. Questions about a source go to the one that claims it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosstail import discovery

if TYPE_CHECKING:  # a wrong path is found before pandas and torch are imported, which take seconds
    from crosstail.data.dataset import DomainDataset
    from crosstail.data.inputs import InputKind

PACKAGE = "crosstail.data.sources"
Columns = Mapping[str, str] | None  # our names of columns → those in a file


@dataclass(frozen=True, kw_only=True)
class Source:
    """What a file in this package declares as SOURCE; the first line of its docstring says what it is."""

    claims: Callable[[Any], bool]  # whether a string, path or object is one of these; cheap, as all of them are asked
    load: "Callable[..., DomainDataset]"  # with the keywords `root` and `SourceOptions`
    kind: "Callable[[str, Columns], InputKind]" = lambda source, columns: image_files()  # from a header alone
    domains: Callable[[str, Columns], int | None] = lambda source, columns: None  # with training samples, from names
    as_inputs: Callable[[str, Columns], list[str]] = lambda source, columns: []  # arguments of `predict` for the same
    help: str = ""  # how messages name it, such as "an .npz file"
    columned: bool = False  # whether it has columns: `load` then takes the keyword `columns`, too
    on_disk: bool = True  # whether it is a file or folder, which must exist
    order: int = 0  # of several that claim the same, the one with the smallest number is asked first


def find(source: Any) -> Source | None:
    """The source that claims a string, a path or an object."""
    return next((one for one in _all(tuple(discovery.folders(PACKAGE))) if one.claims(source)), None)


def others() -> str:
    """What can be typed instead of the name of a benchmark."""
    known = (one.help for one in _all(tuple(discovery.folders(PACKAGE))))
    return f"Other sources: {', '.join(filter(None, known))}."


@cache
def _all(folders: tuple[str, ...]) -> list[Source]:
    found = [discovery.find(PACKAGE, name, "source").SOURCE for name in discovery.names(PACKAGE)]
    return sorted(found, key=lambda source: source.order)


def suffix_of(source: Any) -> str:
    """The suffix of a path in small letters; empty for other objects."""
    return Path(source).suffix.lower() if isinstance(source, (str, PathLike)) else ""


def image_files() -> "InputKind":
    """The kind of most sources."""
    from crosstail.data.inputs.image_files import KIND

    return KIND


def kind_in(source: str, columns: Columns = None) -> "InputKind":
    """The kind of input in a source, from a file's header alone; image files if it cannot be told."""
    return image_files() if (found := find(source)) is None else found.kind(source, columns)


def count_domains(source: str, columns: Columns = None) -> int | None:
    """The number of domains with training samples, from names alone; None if it cannot be told."""
    try:
        return None if (found := find(source)) is None else found.domains(source, columns)
    except (OSError, ValueError, IndexError):  # loading will explain
        return None


def as_inputs(source: str, columns: Columns = None) -> list[str]:
    """The arguments with which `predict` reads the samples of a source; empty if it cannot."""
    return [] if (found := find(source)) is None else found.as_inputs(source, columns)
