"""Content hashes of image files, and what is computed once for all runs on the same files."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.cache import cache_folder
from crosstail.data.images.files import ImageFiles
from crosstail.data.inputs._hashes import as_numbers, digest
from crosstail.storage import write_whole

_ROWS = 1024  # read at a time


def hashes_of_files(x: ImageFiles) -> NDArray[np.int64]:
    """One number per file (N,), of its bytes."""
    return kept("contents", x.fingerprint(), len(x), lambda: _hashes(x))


def kept(what: str, fingerprint: str, count: int, compute: Callable[[], NDArray[Any]]) -> NDArray[np.int64]:
    """One number for each of some samples (N,), computed once for all runs on the same files."""
    file = cache_folder() / what / fingerprint
    if file.exists() and file.stat().st_size == 8 * count:
        return np.frombuffer(file.read_bytes(), "<i8")
    numbers = compute()
    with suppress(OSError):  # a full disk costs time, not the run
        file.parent.mkdir(parents=True, exist_ok=True)
        write_whole(file, numbers.tobytes())
    return numbers


def _hashes(x: ImageFiles) -> NDArray[np.int64]:
    digests: list[bytes] = []
    with ThreadPoolExecutor(x.workers) as pool:
        for start in range(0, len(x), _ROWS):  # a future per file would take more memory than the hashes
            digests += pool.map(lambda i: digest(x.content(i)), range(start, min(start + _ROWS, len(x))))
    return as_numbers(digests)
