"""The number of domains in a source, without loading it."""

from pathlib import Path

import numpy as np

from crosstail.data.benchmarks._load import sheet_of
from crosstail.data.sources._arrays import read_arrays
from crosstail.data.sources._folder import folder_index
from crosstail.data.sources._hugging_face import is_saved_dataset
from crosstail.data.sources._manifest_table import MANIFEST_SUFFIXES, Columns, read_manifest


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
