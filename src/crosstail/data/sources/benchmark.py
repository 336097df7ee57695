"""A benchmark: NAME from `crosstail list datasets`, or NAME:FOLDER."""

from typing import TYPE_CHECKING, Any

from crosstail import discovery
from crosstail.data.sources import Columns, Source, image_files

if TYPE_CHECKING:
    from crosstail.data.benchmarks._sheet import DataSheet
    from crosstail.data.dataset import DomainDataset
    from crosstail.data.inputs import InputKind

BENCHMARKS = "crosstail.data.benchmarks"


def benchmark_of(source: str) -> str | None:
    """The benchmark that a source is, as `NAME` or `NAME:FOLDER`, whatever its case."""
    name = source.partition(":")[0]
    return discovery.same_name(name, discovery.names(BENCHMARKS)) if name.replace("-", "_").isidentifier() else None


def spelled(source: str) -> str:
    """A source with the name of its benchmark, if it is one, in our spelling."""
    name = benchmark_of(source)
    return source if name is None else f"{name}{source[len(name) :]}"


def _sheet(source: str) -> "DataSheet":
    from crosstail.data.benchmarks._load import sheet_of

    sheet = sheet_of(source)
    assert sheet is not None
    return sheet


def _load(source: str, *, seed: int = 0, skip_broken: bool = False, **more: Any) -> "DomainDataset":
    from shlex import quote

    from crosstail.data.benchmarks._load import load_benchmark
    from crosstail.data.sources._as_dataset import without_broken

    if more.get("group_by") is not None:
        raise ValueError(f"{source}: a benchmark defines its own split; remove --group-by {quote(more['group_by'])}")
    dataset = load_benchmark(source, seed=seed)
    return without_broken(dataset) if skip_broken else dataset


def _kind(source: str, columns: Columns) -> "InputKind":
    from crosstail.data.inputs import images

    return images.KIND if _sheet(source).in_memory else image_files()


SOURCE = Source(
    claims=lambda source: isinstance(source, str) and benchmark_of(source) is not None,
    load=_load,
    kind=_kind,
    domains=lambda source, columns: len(_sheet(source).domains),
    on_disk=False,
    order=-1,
)
