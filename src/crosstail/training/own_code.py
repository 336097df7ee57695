"""Runs of a user's own algorithm file: its source is part of the run, and is executed again only on request."""

from dataclasses import replace
from pathlib import Path

from crosstail import algorithms
from crosstail.storage import write_whole
from crosstail.training.folder import RunFolder
from crosstail.training.spec import RunSpec

FILE = "algorithm.py"


def keep(spec: RunSpec, folder: RunFolder) -> None:
    """Copy the file into the run; a run that was begun with another version of it is refused."""
    path = algorithms.own_file(spec.algorithm)
    if not path:
        return
    source = Path(path).read_text(encoding="utf-8")
    kept = folder.path / FILE
    if not kept.exists():
        write_whole(kept, source.encode())
    elif kept.read_text(encoding="utf-8") != source:
        raise ValueError(f"{path} has changed since {folder.path} was started: choose another --out")


def from_copy(spec: RunSpec, folder: RunFolder, trust: bool) -> RunSpec:
    """The spec with the run's own copy in place of the file, wherever that is now."""
    path = algorithms.own_file(spec.algorithm)
    if not path:
        return spec
    kept = folder.path / FILE
    if not trust:
        raise ValueError(f"{folder.path} contains its own algorithm: read {kept}, which would be run, and add --trust")
    return replace(spec, algorithm=spec.algorithm.replace(path, str(kept.absolute())))
