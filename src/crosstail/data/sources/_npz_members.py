"""Arrays of an .npz file; a large one that is not compressed is memory-mapped."""

import struct
import zlib
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile

import numpy as np
from numpy.typing import NDArray

from crosstail.machine import memory

LARGE = 256 << 20  # bytes; a smaller array is read, so that its file may be replaced while it is in use
_CHUNK = 1 << 20
UNREADABLE = (
    *(ValueError, OSError, EOFError, MemoryError, BadZipFile, zlib.error, NotImplementedError),
    *(SyntaxError, TokenError),  # a header is parsed as a Python literal
)
"""Exceptions that NumPy and zipfile raise for a damaged file."""


def read_member(path: Path, name: str, file: Any) -> NDArray[Any]:
    """An array of an open .npz file, memory-mapped if it is large and not compressed."""
    with ZipFile(path) as archive:
        info = archive.getinfo(f"{name}.npy" if f"{name}.npy" in archive.namelist() else name)
    if info.compress_type != ZIP_STORED and info.file_size > memory():
        size = f"{name} takes {info.file_size / 1e9:,.0f} GB, more than the memory of this machine"
        raise ValueError(f"{size}: save it with np.savez, without compression, and it is memory-mapped")
    if info.compress_type != ZIP_STORED or info.file_size < LARGE:
        return file[name]
    with path.open("rb") as stream:
        stream.seek(info.header_offset + 26)  # the lengths of the name and of the extra field, before the content
        start = info.header_offset + 30 + sum(struct.unpack("<HH", stream.read(4)))
        stream.seek(start)
        shape, fortran, dtype = read_header(stream)
        if dtype.hasobject or 0 in shape:
            return file[name]  # which raises, or an array of no bytes, which cannot be mapped
        x = np.memmap(path, dtype, "r", offset=stream.tell(), shape=shape, order="F" if fortran else "C")
        stream.seek(start)
        total, left = 0, info.file_size
        while left and (part := stream.read(min(left, _CHUNK))):
            total, left = zlib.crc32(part, total), left - len(part)
    if total != info.CRC:
        raise BadZipFile(f"Bad CRC-32 for file {name}.npy")
    return x


def read_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, Fortran order and dtype of an array in .npy format."""
    version = np.lib.format.read_magic(stream)
    read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    return read(stream)
