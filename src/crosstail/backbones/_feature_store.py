"""Features on disk, found by the checksum of what they were made of.

One folder holds what one backbone made. Each process that adds to it has two files of its own there: `.rows` with the
features one after the other, and `.keys` with a key and a sum for each. A row is written before its key, and nobody
changes a file that is not theirs, so that after a kill at any moment what is not whole is not found, or fails its sum.
"""

import os
import time
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float32]

_ENTRY = np.dtype([("key", "V32"), ("sum", "<u4")])


class FeatureStore:
    """Rows of `num_features` numbers by a key of 32 bytes."""

    def __init__(self, folder: Path, num_features: int) -> None:
        self.folder = folder
        self.num_features = num_features
        self._files: tuple[IO[bytes], IO[bytes]] | None = None
        self._found: dict[bytes, tuple[Features, int, int]] = {}  # where a key's row is, and its sum
        for keys in sorted(folder.glob("*.keys")):  # the names begin with a time: what was made again comes later
            self._find(keys)

    def _find(self, keys: Path) -> None:
        content, rows = keys.read_bytes(), keys.with_suffix(".rows")
        size = rows.stat().st_size if rows.exists() else 0
        count = min(len(content) // _ENTRY.itemsize, size // (4 * self.num_features))
        if not count:
            return
        features = np.memmap(rows, np.float32, "r", shape=(count, self.num_features))
        entries = np.frombuffer(content, _ENTRY, count)
        for i, (key, total) in enumerate(zip(entries["key"].tolist(), entries["sum"].tolist(), strict=True)):
            self._found[key] = features, i, total

    def get(self, key: bytes) -> Features | None:
        """The features of a key, or None if they are not there or damaged."""
        if key not in self._found:
            return None
        features, i, total = self._found[key]
        row = np.array(features[i])
        return row if _sum(key, row) == total else None

    def add(self, keys: list[bytes], features: Features) -> None:
        """Keep the features (n, F) of these keys for the next time."""
        entries = np.array([(key, _sum(key, row)) for key, row in zip(keys, features, strict=True)], _ENTRY)
        try:
            if self._files is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                name = self.folder / f"{time.time_ns():020}-{os.getpid()}"
                self._files = name.with_suffix(".rows").open("ab"), name.with_suffix(".keys").open("ab")
            for file, content in zip(self._files, (features, entries), strict=True):
                file.write(np.ascontiguousarray(content).data)
                file.flush()
        except OSError as error:
            reason = f"{error.strerror}; $CROSSTAIL_CACHE names another folder"
            raise OSError(error.errno, reason, str(self.folder)) from None

    def close(self) -> None:
        """Close the files that were written."""
        for file in self._files or ():
            file.close()
        self._files = None


def _sum(key: bytes, row: Features) -> int:
    return zlib.crc32(row.data, zlib.crc32(key))
