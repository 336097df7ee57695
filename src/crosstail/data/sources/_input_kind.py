"""The kind of input that a source holds, without loading it."""

from pathlib import Path
from typing import Literal
from zipfile import BadZipFile, ZipFile

from crosstail.data.benchmarks._load import sheet_of
from crosstail.data.sources._manifest_table import MANIFEST_SUFFIXES, Columns, columns_of
from crosstail.data.sources._npz_members import read_header

InputKind = Literal["files", "images", "vectors"]


def kind_of(source: str, columns: Columns = None) -> InputKind:
    """Image files, small images in memory, or vectors, from a file's header alone; "files" if it cannot be told.

    >>> kind_of("digits"), kind_of("pacs"), kind_of("photos/")
    ('images', 'files', 'files')
    """
    sheet, path = sheet_of(source), Path(source)
    if sheet is not None:
        return "images" if sheet.in_memory else "files"
    if path.suffix.lower() == ".npz":
        return "images" if _dimensions(path) == 4 else "vectors"
    if path.suffix.lower() in MANIFEST_SUFFIXES and path.is_file() and "x" in columns_of(path, columns):
        return "vectors"
    return "files"


def _dimensions(path: Path) -> int | None:
    """Number of dimensions of x in an .npz file, or None if it has no x (loading will explain)."""
    try:
        with ZipFile(path) as archive, archive.open("x.npy") as stream:
            return len(read_header(stream)[0])
    except (OSError, KeyError, ValueError, BadZipFile):
        return None
