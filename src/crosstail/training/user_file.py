"""Users' own files in a run: the code of each is part of the run, and is executed again only on request."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosstail import discovery
from crosstail.storage import write_whole
from crosstail.training.folder import RunFolder
from crosstail.training.spec import RunSpec

FIELDS = ("algorithm", "second_stage", "backbone")
"""Fields of a spec that may name files."""


def named(spec: RunSpec, folder: RunFolder) -> Iterator[tuple[str, str, Path]]:
    """Each field of a spec that names a file, the file, and its copy in the run, which has the same name."""
    for field in FIELDS:
        for path in discovery.own_files(getattr(spec, field) or ""):
            yield field, path, folder.path / field / Path(path).name


def keep(spec: RunSpec, folder: RunFolder) -> None:
    """Copy the files into the run; a run that was begun with another version of one is refused."""
    for _, path, kept in named(spec, folder):
        source = discovery.require_file(Path(path))
        if not kept.exists():
            kept.parent.mkdir(exist_ok=True)
            write_whole(kept, source)
        elif kept.read_bytes() != source:
            raise ValueError(f"{path} has changed since {folder.path} was started: choose another --out")


def from_copy(spec: RunSpec, folder: RunFolder, trust: bool) -> RunSpec:
    """The spec with the run's own copies in place of the files, wherever those are now."""
    for field, path, kept in named(spec, folder):
        if not trust:
            own = field.replace("_", " ")
            raise ValueError(f"{folder.path} contains its own {own}: read {kept}, which would be run, and add --trust")
        words = (str(kept.absolute()) if word == path else word for word in discovery.combined(getattr(spec, field)))
        changed: dict[str, Any] = {field: "+".join(words)}
        spec = replace(spec, **changed)
    return spec
