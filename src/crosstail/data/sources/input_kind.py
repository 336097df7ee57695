"""The kind of input that a source holds, without loading it."""

from pathlib import Path
from zipfile import BadZipFile, ZipFile

import numpy as np

from crosstail.data.benchmarks._load import sheet_of
from crosstail.data.inputs import InputKind, image_files, images, kind_of, vectors
from crosstail.data.sources.manifest_table import MANIFEST_SUFFIXES, Columns, columns_of
from crosstail.data.sources.npz_members import read_header


def kind_in(source: str, columns: Columns = None) -> InputKind:
    """The kind of input in a source, from a file's header alone; image files if it cannot be told.

    >>> kind_in("digits").noun, kind_in("digits").backbone, kind_in("photos/").backbone
    ('image', 'small_cnn', 'efficientnet_lite0')
    """
    sheet, path = sheet_of(source), Path(source)
    if sheet is not None:
        return images.KIND if sheet.in_memory else image_files.KIND
    if path.suffix.lower() == ".npz":
        return _kind_of_array(path)
    if path.suffix.lower() in MANIFEST_SUFFIXES and path.is_file() and "x" in columns_of(path, columns):
        return vectors.KIND
    return image_files.KIND


def _kind_of_array(path: Path) -> InputKind:
    """The kind that holds x in an .npz file; vectors if there is no such x (loading will explain)."""
    try:
        with ZipFile(path) as archive, archive.open("x.npy") as stream:
            shape, _, dtype = read_header(stream)
        return kind_of(np.broadcast_to(np.zeros((), dtype), shape))  # without content
    except (OSError, KeyError, ValueError, BadZipFile):
        return vectors.KIND
