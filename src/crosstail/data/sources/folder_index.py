"""The list of a folder's images, kept from one run to the next."""

import hashlib
import json
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosstail.cache import cache_folder, write_atomically

VERSION = 1
# A file written over in its place leaves its folder's time alone. So many files are looked at each time: all of most
# folders, in a tenth of a second, and evenly spaced ones of larger folders.
LOOKED_AT = 20_000
# Within the clock's grain a change leaves no trace in a time: what is this young is not kept.
SETTLED = 2_000_000_000  # nanoseconds


@dataclass(frozen=True, eq=False)
class FolderIndex:
    """What a folder holds; images of a pair are next to each other, pair by pair."""

    directories: dict[str, int]  # every folder that was listed, and when it changed
    pairs: tuple[tuple[str, str, int], ...]  # domain, class, number of images
    notes: tuple[str, ...]
    paths: Any  # Arrow array of strings, relative to the root
    sizes: NDArray[np.int64]
    times: NDArray[np.int64]


def index_path(root: Path) -> Path:
    """Where the index of a folder is kept."""
    return cache_folder() / "index" / f"{hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:32]}.arrow"


def write_index(root: Path, index: FolderIndex) -> None:
    """Keep an index, unless its folder is still changing."""
    newest = max(max(index.directories.values()), int(index.times.max(initial=0)))
    if time.time_ns() - newest < SETTLED:
        return
    about = {
        "version": VERSION,
        "root": str(root.resolve()),
        "directories": index.directories,
        "pairs": index.pairs,
        "notes": index.notes,
    }
    table = pa.table({"path": index.paths, "size": index.sizes, "time": index.times})
    schema = table.schema.with_metadata({"crosstail": json.dumps(about)})

    def write(path: Path) -> None:
        with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, schema) as writer:
            writer.write_table(table)

    write_atomically(index_path(root), write)


def read_index(root: Path) -> FolderIndex | None:
    """The index of a folder, or None if there is none or something has changed since."""
    try:
        with pa.OSFile(str(index_path(root))) as file, pa.ipc.open_file(file) as reader:
            about = json.loads(reader.schema.metadata[b"crosstail"])
            if about["version"] != VERSION or about["root"] != str(root.resolve()):
                return None
            for relative, changed in about["directories"].items():
                if os.stat(f"{root}/{relative}").st_mtime_ns != changed:  # noqa: PTH116
                    return None
            table = reader.read_all().combine_chunks()
        index = FolderIndex(
            about["directories"],
            tuple((domain, name, count) for domain, name, count in about["pairs"]),
            tuple(about["notes"]),
            table["path"].combine_chunks(),
            table["size"].to_numpy(),
            table["time"].to_numpy(),
        )
        return index if _files_are_the_same(root, index) else None
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):  # not there, or damaged: it is made again
        return None


def _files_are_the_same(root: Path, index: FolderIndex) -> bool:
    for row in range(0, len(index.sizes), max(1, -(-len(index.sizes) // LOOKED_AT))):
        found = os.stat(f"{root}/{index.paths[row].as_py()}")  # noqa: PTH116
        if (found.st_size, found.st_mtime_ns) != (index.sizes[row], index.times[row]):
            return False
    return True
