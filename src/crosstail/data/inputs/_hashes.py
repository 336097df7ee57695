"""A number for a sample's content: of half a million samples, two that differ have the same once in 10⁸ data sets."""

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS = 1024  # read at a time


def hashes_of_rows(x: NDArray[Any]) -> NDArray[np.int64]:
    """One number per row (N,)."""
    kind = np.float32 if x.dtype.kind == "f" else x.dtype
    parts = (np.asarray(x[i : i + _ROWS], kind) for i in range(0, len(x), _ROWS))
    return np.frombuffer(b"".join(digest(row.tobytes()) for rows in parts for row in rows), "<i8")


def digest(content: bytes) -> bytes:
    """The hash of one sample's bytes."""
    return hashlib.blake2b(content, digest_size=8).digest()


NO_CONTENT = int.from_bytes(digest(b""), "little", signed=True)
"""The number of an empty file."""
