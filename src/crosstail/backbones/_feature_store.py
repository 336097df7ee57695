"""Features or activations on disk, by a hash of the input: a folder for each backbone.

Each process that writes has two files, `.rows` with the features, and `.keys` with a key and a checksum per row, which
is written after it. So after a kill at any moment, an incomplete row is not found, or fails its checksum.
"""

import os
import time
import weakref
import zlib
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

Features = NDArray[np.float32]

_ENTRY = np.dtype([("key", "V32"), ("sum", "<u4")])


class FeatureStore:
    """Rows of `num_features` numbers by 32-byte key; unless `required`, a full disk is not an error."""

    def __init__(self, folder: Path, num_features: int, *, dtype: Any = np.float32, required: bool = True) -> None:
        self.folder = folder
        self.num_features = num_features
        self.required = required
        self._files: tuple[IO[bytes], IO[bytes]] | None = None
        self._found: dict[bytes, tuple[NDArray[Any], int, int]] = {}  # file, row and checksum of each key
        for keys in sorted(folder.glob("*.keys")):  # names begin with a time: later files win
            content, rows = keys.read_bytes(), keys.with_suffix(".rows")
            size = rows.stat().st_size if rows.exists() else 0
            if not (count := min(len(content) // _ENTRY.itemsize, size // (np.dtype(dtype).itemsize * num_features))):
                continue
            features = np.memmap(rows, dtype, "r", shape=(count, num_features))
            entries = np.frombuffer(content, _ENTRY, count)
            for i, (key, total) in enumerate(zip(entries["key"].tolist(), entries["sum"].tolist(), strict=True)):
                self._found[key] = features, i, total

    def __contains__(self, key: bytes) -> bool:
        return key in self._found

    def place(self, key: bytes) -> tuple[NDArray[Any], int]:
        """The file of a key that was there when the store was opened, as rows, and the row."""
        rows, i, _ = self._found[key]
        return rows, i

    def get(self, key: bytes) -> NDArray[Any] | None:
        """The features of a key, or None if missing or damaged."""
        if key not in self._found:
            return None
        features, i, total = self._found[key]
        row = np.array(features[i])
        return row if _sum(key, row) == total else None

    def add(self, keys: list[bytes], features: NDArray[Any]) -> None:
        entries = np.array([(key, _sum(key, row)) for key, row in zip(keys, features, strict=True)], _ENTRY)
        try:
            if self._files is None:
                self.folder.mkdir(parents=True, exist_ok=True)
                name = self.folder / f"{time.time_ns():020}-{os.getpid()}"
                self._files = name.with_suffix(".rows").open("ab"), name.with_suffix(".keys").open("ab")
                weakref.finalize(self, _close, *self._files)
            for file, content in zip(self._files, (features, entries), strict=True):
                file.write(np.ascontiguousarray(content).data)
                file.flush()
        except OSError as error:
            if not self.required:
                return
            reason = f"{error.strerror}; $CROSSTAIL_CACHE names another folder"
            raise OSError(error.errno, reason, str(self.folder)) from None

    def close(self) -> None:
        """Close the files, as happens at the latest when the store is garbage-collected."""
        _close(*self._files or ())
        self._files = None


def _close(*files: IO[bytes]) -> None:
    for file in files:
        with suppress(OSError):  # on a full disk, which `add` has reported
            file.close()


def _sum(key: bytes, row: NDArray[Any]) -> int:
    return zlib.crc32(row.data, zlib.crc32(key))
