"""The cached listing of a folder's images."""

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
from crosstail.data.images.decode import SUFFIXES
from crosstail.data.images.files import file_state

VERSION = 3
# Overwriting a file in place does not change its folder's modification time, so this many files are checked at each
# load: all of most folders, within a tenth of a second, and evenly spaced ones in larger folders.
CHECKED = 20_000
# A second change within the clock's resolution leaves no trace in the time: a folder this recent is not cached.
SETTLED = 2_000_000_000  # nanoseconds


@dataclass(frozen=True, eq=False)
class FolderIndex:
    """The images of a folder, pair by pair."""

    directories: dict[str, int]  # every folder listed, and its modification time
    pairs: tuple[tuple[str, str, str, int], ...]  # split or "", domain, class, number of images
    notes: tuple[str, ...]
    paths: Any  # Arrow array of strings, relative to the root
    sizes: NDArray[np.int64]
    times: NDArray[np.int64]


def index_path(root: Path) -> Path:
    """Where the index of a folder is cached."""
    return cache_folder() / "index" / f"{hashlib.sha256(str(root.resolve()).encode()).hexdigest()[:32]}.arrow"


def _about(root: Path) -> dict[str, Any]:
    """Key that must match for a cached index to be used; HEIC photos are images once pillow-heif is installed."""
    return {"version": VERSION, "root": str(root.resolve()), "heic": ".heic" in SUFFIXES}


def write_index(root: Path, index: FolderIndex) -> None:
    """Cache an index, unless its folder has only just changed."""
    newest = max(max(index.directories.values()), int(index.times.max(initial=0)))
    if time.time_ns() - newest < SETTLED:
        return
    about: dict[str, Any] = _about(root) | {
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
    """The cached index of a folder, or None if there is none or something has changed since."""
    try:
        with pa.OSFile(str(index_path(root))) as file, pa.ipc.open_file(file) as reader:
            about = json.loads(reader.schema.metadata[b"crosstail"])
            if not about.items() >= _about(root).items():
                return None
            for relative, changed in about["directories"].items():
                if os.stat(f"{root}/{relative}").st_mtime_ns != changed:  # noqa: PTH116
                    return None
            table = reader.read_all().combine_chunks()
        paths, sizes, times = table["path"].combine_chunks(), table["size"].to_numpy(), table["time"].to_numpy()
        for row in range(0, len(sizes), max(1, -(-len(sizes) // CHECKED))):
            if file_state(f"{root}/{paths[row].as_py()}") != (sizes[row], times[row]):
                return None
        pairs = tuple((split, domain, name, count) for split, domain, name, count in about["pairs"])
        return FolderIndex(about["directories"], pairs, tuple(about["notes"]), paths, sizes, times)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException):  # missing or damaged: list the folder again
        return None
