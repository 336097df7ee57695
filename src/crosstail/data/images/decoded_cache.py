"""Decoded images on disk, so that each image is decoded once across epochs, runs and processes.

`pixels` only grows; `table` has a record per image, written after its pixels and with their checksum, so that after a
kill or a power cut incomplete images are decoded again.
"""

import mmap
import os
import shutil
import threading
import weakref
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from crosstail.data.images.decode import Pixels

GIB = 1 << 30

_RECORD = np.dtype(
    [("offset", "<i8"), ("height", "<i4"), ("width", "<i4"), ("size", "<i8"), ("mtime", "<i8"), ("sum", "<u8")]
)


class DecodedCache:
    """Pixels of the images of one index; images beyond `max_bytes` are not cached.

    By default they take a quarter of what is free on the disk, or 8 GiB if that is more; half of it is left.
    """

    def __init__(self, folder: Path, num_images: int, *, max_bytes: int | None = None) -> None:
        self.folder, self.num_images, self.max_bytes = folder, num_images, max_bytes
        self._lock = threading.Lock()
        self._mapped: Pixels = np.zeros(0, np.uint8)
        self._table: Any = None
        self._limit = 0
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            table = os.open(self.folder / "table", os.O_RDWR | os.O_CREAT, 0o644)
            try:
                os.ftruncate(table, self.num_images * _RECORD.itemsize)  # new records are zero: no pixels
                self._table = np.frombuffer(mmap.mmap(table, 0), _RECORD)
            finally:
                os.close(table)
            self._pixels = os.open(self.folder / "pixels", os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
            self._close = weakref.finalize(self, os.close, self._pixels)
            used, free = os.lseek(self._pixels, 0, os.SEEK_END), shutil.disk_usage(self.folder).free
            most = max(8 * GIB, (used + free) // 4) if self.max_bytes is None else self.max_bytes
            self._limit = min(most, used + free // 2)
        except OSError:  # a read-only disk: nothing is cached
            self._table = None

    def __reduce__(self) -> tuple[Any, ...]:  # another process opens the files again
        return partial(DecodedCache, max_bytes=self.max_bytes), (self.folder, self.num_images)

    def close(self) -> None:
        """Close the files; from then on nothing is found or cached."""
        with self._lock:
            if self._table is not None:
                self._table = None
                self._close()

    def read(self, row: int, size: int, mtime: int) -> Pixels | None:
        """The pixels (H, W, 3) of an image whose file has this size and modification time, or None."""
        table = self._table  # read once: another thread may close the cache
        if table is None:
            return None
        offset, height, width, *found, total = table[row].tolist()
        if found != [size, mtime] or height <= 0 or width <= 0 or offset % 8:
            return None
        count = height * width * 3
        stored = self._bytes(offset, _padded(count))
        if stored is None or _sum(stored) != total:
            return None
        return stored[:count].reshape(height, width, 3)

    def write(self, row: int, size: int, mtime: int, pixels: Pixels) -> None:
        """Cache the pixels of an image if there is room."""
        table, count = self._table, pixels.size
        if table is None or not self._limit:
            return
        content = np.zeros(_padded(count), np.uint8)
        content[:count] = pixels.reshape(-1)
        offset = self._append(content)
        if offset is not None:
            table[row] = (offset, *pixels.shape[:2], size, mtime, _sum(content))

    def _append(self, content: Pixels) -> int | None:
        with self._lock:
            if self._table is None or os.lseek(self._pixels, 0, os.SEEK_END) + len(content) > self._limit:
                return None
            try:
                written = os.write(self._pixels, content.data)
            except OSError:  # the disk is full
                self._limit = 0
                return None
            # The end of this write, whatever other processes have appended since.
            return os.lseek(self._pixels, 0, os.SEEK_CUR) - len(content) if written == len(content) else None

    def _bytes(self, offset: int, count: int) -> Pixels | None:
        """A part of the mapped file, which is mapped again once it has grown."""
        mapped = self._mapped
        if offset + count > len(mapped):
            with self._lock:
                if self._table is None or offset + count > os.fstat(self._pixels).st_size:
                    return None
                mapped = np.frombuffer(mmap.mmap(self._pixels, 0, access=mmap.ACCESS_READ), np.uint8)
                self._mapped = mapped
        return mapped[offset : offset + count]


def _padded(count: int) -> int:
    return -(-count // 8) * 8  # whole 8-byte words, for the checksum


def _sum(content: Pixels) -> int:
    return int(np.add.reduce(content.view(np.uint64)))
