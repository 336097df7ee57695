"""The kind of input that a source holds, and the number of its domains, without loading it."""

from pathlib import Path
from typing import Literal
from zipfile import BadZipFile, ZipFile

import numpy as np

from crosstail.data.benchmarks._load import sheet_of
from crosstail.data.sources.arrays import read_arrays
from crosstail.data.sources.folder import folder_index
from crosstail.data.sources.hugging_face import is_saved_dataset
from crosstail.data.sources.manifest_table import MANIFEST_SUFFIXES, Columns, columns_of, read_manifest
from crosstail.data.sources.npz_members import read_header

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


def count_domains(source: str, columns: Columns = None) -> int | None:
    """The number of domains with training samples, from names alone; None if it cannot be told.

    >>> count_domains("digits"), count_domains("hf:someone/photos")
    (3, None)
    """
    sheet, path = sheet_of(source), Path(source)
    if sheet is not None:
        return len(sheet.domains)
    try:
        if path.suffix.lower() == ".npz":
            arrays = read_arrays(path, ("domain",), ("split",))
            domain, split = arrays["domain"], arrays.get("split")
        elif path.suffix.lower() in MANIFEST_SUFFIXES:
            manifest = read_manifest(path, columns)
            domain, split = manifest.codes("domain")[0], manifest.split
        elif path.is_dir() and not is_saved_dataset(path):
            return len({domain for split, domain, _, _ in folder_index(path).pairs if split in ("", "train")})
        else:
            return None
        return len(np.unique(domain if split is None else domain[split == "train"]))
    except (OSError, ValueError, IndexError):  # loading will explain
        return None


def _dimensions(path: Path) -> int | None:
    """Number of dimensions of x in an .npz file, or None if it has no x (loading will explain)."""
    try:
        with ZipFile(path) as archive, archive.open("x.npy") as stream:
            return len(read_header(stream)[0])
    except (OSError, KeyError, ValueError, BadZipFile):
        return None
