"""A benchmark: NAME from `crosstail list datasets`, or NAME:FOLDER; NAME may be a file such as ./mine.py."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosstail import discovery
from crosstail.data.sources import Columns, Source

if TYPE_CHECKING:
    from crosstail.data.benchmarks._sheet import DataSheet
    from crosstail.data.dataset import DomainDataset
    from crosstail.data.inputs import InputKind

BENCHMARKS = "crosstail.data.benchmarks"


def with_folder(source: str) -> tuple[str, str | None]:
    """A benchmark and its folder, if one is named.

    >>> with_folder("pacs"), with_folder("pacs:data/pacs"), with_folder("C:/mine.py:data")
    (('pacs', None), ('pacs', 'data/pacs'), ('C:/mine.py', 'data'))
    """
    match = re.fullmatch(r"(.*?\.py|[^:]*)(?::(.*))?", source, re.DOTALL)
    return (match[1], match[2]) if match else (source, None)


def benchmark_of(source: str) -> str | None:
    """The benchmark that a source is, as `NAME` or `NAME:FOLDER`, whatever its case; a file keeps its path."""
    name, _ = with_folder(source)
    if name.endswith(".py"):
        return name if Path(name).is_file() else None
    return discovery.same_name(name, discovery.names(BENCHMARKS)) if name.replace("-", "_").isidentifier() else None


def spelled(source: str) -> str:
    """A source with the name of its benchmark, if it is one, in our spelling."""
    name = benchmark_of(source)
    return source if name is None else f"{name}{source[len(name) :]}"


def _sheet(source: str) -> "DataSheet":
    from crosstail.data.benchmarks._load import existing_sheet

    return existing_sheet(source)


def _load(source: str, *, seed: int = 0, skip_broken: bool = False, **more: Any) -> "DomainDataset":
    from shlex import quote

    from crosstail.data.benchmarks._load import load_benchmark
    from crosstail.data.sources._as_dataset import without_broken

    if more.get("group_by") is not None:
        raise ValueError(f"{source}: a benchmark defines its own split; remove --group-by {quote(more['group_by'])}")
    dataset = load_benchmark(source, seed=seed)
    return without_broken(dataset) if skip_broken else dataset


def _kind(source: str, columns: Columns) -> "InputKind":
    declared: InputKind = discovery.find("crosstail.data.inputs", _sheet(source).inputs, "kind of input").KIND
    return declared


SOURCE = Source(
    claims=lambda source: isinstance(source, str) and benchmark_of(source) is not None,
    load=_load,
    kind=_kind,
    domains=lambda source, columns: len(_sheet(source).domains),
    on_disk=False,
    order=-1,
)
