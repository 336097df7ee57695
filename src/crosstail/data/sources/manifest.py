"""A .csv or .parquet file, or a DataFrame, with a row per sample: path (or x), domain, label, split and group."""

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosstail.data.sources import Columns, Source, image_files, suffix_of

if TYPE_CHECKING:
    from crosstail.data.dataset import DomainDataset
    from crosstail.data.inputs import InputKind

SUFFIXES = (".csv", ".parquet")


def _is_frame(source: Any) -> bool:
    return any(
        (kind.__module__.partition(".")[0], kind.__name__) == ("pandas", "DataFrame") for kind in type(source).__mro__
    )


def _load(source: Any, **options: Any) -> "DomainDataset":
    from crosstail.data.sources._manifest import load_frame, load_manifest

    return (load_frame if _is_frame(source) else load_manifest)(source, **options)


def _kind(source: str, columns: Columns) -> "InputKind":
    from crosstail.data.inputs import vectors
    from crosstail.data.sources._manifest_table import columns_of

    return vectors.KIND if Path(source).is_file() and "x" in columns_of(Path(source), columns) else image_files()


def _domains(source: str, columns: Columns) -> int:
    from crosstail.data.sources._as_dataset import trained_domains
    from crosstail.data.sources._manifest_table import read_manifest

    manifest = read_manifest(Path(source), columns)
    return trained_domains(manifest.codes("domain")[0], manifest.split)


def _as_inputs(source: str, columns: Columns) -> list[str]:
    path = Path(source)
    if suffix_of(source) != ".csv" or not path.is_file():
        return []
    with path.open(encoding="utf-8-sig", errors="replace") as lines:
        header = [name.strip().strip('"') for name in re.split("[,;\t]", lines.readline())]
    site = (columns or {}).get("domain", "domain")
    return [source, *(["--site", f"column:{site}"] if site in header else ())] if "path" in header else []


SOURCE = Source(
    claims=lambda source: suffix_of(source) in SUFFIXES or _is_frame(source),
    load=_load,
    kind=_kind,
    domains=_domains,
    as_inputs=_as_inputs,
    help="a .csv or .parquet manifest",
    columned=True,
)
