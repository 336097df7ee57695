"""Which benchmark, file or folder a source names, found without reading it."""

from itertools import islice
from os import sep
from pathlib import Path

from crosstail import discovery
from crosstail.data.sources import find, others
from crosstail.data.sources.benchmark import BENCHMARKS

# Names that say little about the data:
COMMON = {"annotations", "data", "dataset", "index", "labels", "manifest", "metadata"}
LOOKED_AT = 1000  # names beside a wrong one


def data_name(source: str | Path) -> str:
    """What to call the data: the last part of the source, or its folder if the file has a common name.

    >>> data_name("photos/"), data_name("ham10000/manifest.csv")
    ('photos', 'ham10000')
    """
    path = Path(source)
    if path.stem.lower() not in COMMON or not path.suffix:
        return path.name
    folder = (path.resolve() if path.exists() else path).parent.name
    return folder.strip(".") or path.name


def require_source(source: str) -> None:
    """Refuse a source that is not there; a similar name beside it is suggested."""
    path, found = Path(source), find(source)
    if path.exists() or (found is not None and not found.on_disk):
        return
    entries = islice(path.parent.iterdir(), LOOKED_AT) if path.parent.is_dir() else ()
    beside = [entry.name for entry in entries if not entry.name.startswith(".")]
    if sep in source or path.suffix:
        near = discovery.nearest(path.name, beside)
        hint = f", did you mean {path.with_name(near)}?" if near else ""
        raise FileNotFoundError(f"{path}: there is no such file or folder{hint}")
    benchmarks = discovery.names(BENCHMARKS)
    near = discovery.nearest(source, [*benchmarks, *beside])
    raise ValueError(
        f"unknown data set {source!r}: {discovery.suggestion(source, [near] if near else benchmarks)} {others()}"
    )
