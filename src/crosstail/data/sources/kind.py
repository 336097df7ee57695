"""What a source holds, without loading it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Literal
from zipfile import BadZipFile, ZipFile

from crosstail.data.benchmarks._load import sheet_of
from crosstail.data.sources.manifest_table import SUFFIXES as MANIFESTS
from crosstail.data.sources.manifest_table import read_manifest
from crosstail.data.sources.npz_members import read_header

Kind = Literal["files", "images", "vectors"]


def kind_of(source: str, columns: Mapping[str, str] | None = None) -> Kind:
    """Image files, small images in memory, or vectors; of a source that is wrong in some way, the likeliest.

    >>> kind_of("digits"), kind_of("pacs"), kind_of("photos/")
    ('images', 'files', 'files')
    """
    sheet, path = sheet_of(source), Path(source)
    if sheet is not None:
        return "images" if sheet.in_memory else "files"
    if path.suffix.lower() == ".npz":
        return "images" if _dimensions(path) == 4 else "vectors"
    if path.suffix.lower() in MANIFESTS and path.is_file() and read_manifest(path, columns).where == "x":
        return "vectors"
    return "files"


def _dimensions(path: Path) -> int | None:
    """Of x in an .npz file, from its header; None if there is no such thing (which loading will explain)."""
    try:
        with ZipFile(path) as archive, archive.open("x.npy") as stream:
            return len(read_header(stream)[0])
    except (OSError, KeyError, ValueError, BadZipFile):
        return None
