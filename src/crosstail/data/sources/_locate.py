"""Which benchmark, file or folder a source names, found without reading it."""

from itertools import islice
from os import sep
from pathlib import Path

from crosstail import discovery

BENCHMARKS = "crosstail.data.benchmarks"
HUGGING_FACE = "hf:"
COMMON = {
    "annotations",
    "data",
    "dataset",
    "index",
    "labels",
    "manifest",
    "metadata",
}  # names that say little about the data
LOOKED_AT = 1000  # names beside a wrong one
OTHERS = "Other sources: a folder, a .csv or .parquet manifest, an .npz file, hf:NAME."


def benchmark_of(source: str) -> str | None:
    """The benchmark that a source is, as `NAME` or `NAME:FOLDER`, whatever its case.

    >>> benchmark_of("PACS:somewhere"), benchmark_of("somewhere/mine.npz")
    ('pacs', None)
    """
    name = source.partition(":")[0]
    return discovery.same_name(name, discovery.names(BENCHMARKS)) if name.replace("-", "_").isidentifier() else None


def spelled(source: str) -> str:
    """A source with the name of its benchmark, if it is one, in our spelling.

    >>> spelled("PACS:Somewhere"), spelled("Mine.npz")
    ('pacs:Somewhere', 'Mine.npz')
    """
    name = benchmark_of(source)
    return source if name is None else f"{name}{source[len(name) :]}"


def data_name(source: str | Path) -> str:
    """What to call the data: the last part of the source, or its folder if the file has a common name.

    >>> data_name("photos/"), data_name("mine.npz"), data_name("ham10000/manifest.csv")
    ('photos', 'mine.npz', 'ham10000')
    """
    path = Path(source)
    if path.stem.lower() not in COMMON or not path.suffix:
        return path.name
    folder = (path.resolve() if path.exists() else path).parent.name
    return folder.strip(".") or path.name


def require_source(source: str) -> None:
    """Refuse a source that is neither a benchmark nor there; a similar name beside it is suggested."""
    path = Path(source)
    if benchmark_of(source) or source.startswith(HUGGING_FACE) or path.exists():
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
        f"unknown data set {source!r}: {discovery.suggestion(source, [near] if near else benchmarks)} {OTHERS}"
    )
