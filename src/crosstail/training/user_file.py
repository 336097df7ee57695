"""Users' own files in a run: the code of each is part of the run, and is executed again only on request."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from crosstail import discovery
from crosstail.data.sources.benchmark import with_folder
from crosstail.storage import write_whole
from crosstail.training.folder import RunFolder
from crosstail.training.spec import RunSpec

MODEL, DATA = ("algorithm", "second_stage", "backbone"), ("dataset",)
"""Fields of a spec that may name files: those whose code the model needs, and the data set, with its sheet."""
KEPT = (*MODEL, *DATA, "select_on")


def named(spec: RunSpec, folder: RunFolder, of: Sequence[str]) -> Iterator[tuple[str, str, Path]]:
    """Each of these fields that names a file, the file, and its copy in the run, which has the same name."""
    for field in of:
        value = getattr(spec, field) or ""
        for path in discovery.own_files(with_folder(value)[0] if field in DATA else value):
            yield field, path, folder.path / field / Path(path).name


def keep(spec: RunSpec, folder: RunFolder) -> None:
    """Copy the files into the run; a run that was begun with another version of one is refused."""
    for field, path, copy in named(spec, folder, KEPT):
        for suffix in (".py", ".toml") if field in DATA else (".py",):
            file, kept = Path(path).with_suffix(suffix), copy.with_suffix(suffix)
            source = discovery.require_file(file)
            if not kept.exists():
                kept.parent.mkdir(exist_ok=True)
                write_whole(kept, source)
            elif kept.read_bytes() != source:
                raise ValueError(f"{file} has changed since {folder.path} was started: choose another --out")


def from_copy(spec: RunSpec, folder: RunFolder, trust: bool, of: Sequence[str] = MODEL) -> RunSpec:
    """The spec with the run's own copies in place of the files, wherever those are now."""
    for field, path, kept in named(spec, folder, of):
        if not trust:
            own = {"dataset": "data set"}.get(field, field.replace("_", " "))
            raise ValueError(f"{folder.path} contains its own {own}: read {kept}, which would be run, and add --trust")
        value, copy = getattr(spec, field), str(kept.absolute())
        if field in DATA:  # the file itself if it has not changed, because its data may be beside it
            same = Path(path).exists() and Path(path).read_bytes() == kept.read_bytes()
            changed: dict[str, Any] = {field: value if same else copy + value[len(path) :]}
        else:
            changed = {field: "+".join(copy if word == path else word for word in discovery.combined(value))}
        spec = replace(spec, **changed)
    return spec
