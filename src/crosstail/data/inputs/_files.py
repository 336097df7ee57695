"""Image files examined in one pass: hash, header, thumbnail and problem from a single read."""

import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosstail.cache import cache_folder, write_atomically
from crosstail.data.images.decode import BrokenImage, header, read_image
from crosstail.data.images.files import ImageFiles, ReadFile
from crosstail.data.inputs._examined import CONTENT, DECODED, PIXELS, Examined, Look, are_blank, thumbnail
from crosstail.data.inputs._hashes import digest
from crosstail.machine import cores
from crosstail.progress import Progress

_ROWS = 256  # read at a time: a future per file would take more memory than what is found out


def examine_files(x: ImageFiles, detail: int = CONTENT, progress: Progress | None = None) -> Examined:
    """Examine files; a file is read only if this process has not done so before, or if it has changed."""
    rows, states, table = x.rows, x.states(), x.table
    unknown = table.unknown(rows, states, detail)
    if len(unknown):
        file = cache_folder() / "contents" / x.fingerprint(states)
        stored = stored_numbers(file, len(x)) if detail == CONTENT else None
        if stored is not None:
            table.add(rows[unknown], states[unknown], stored[unknown], CONTENT)
        else:
            for some, found in _read(x, unknown, detail, progress):
                table.add(rows[some], states[some], np.array([one.content or 0 for one in found]), detail)
                for row, one in zip(rows[some].tolist(), found, strict=True):
                    table.describe(row, one)
            if all(one.content is not None for one in table.errors.values()):
                store_numbers(file, table.content[rows])
    at = enumerate(rows.tolist()) if table.errors else ()
    broken = {i: table.errors[row] for i, row in at if row in table.errors}
    return Examined(
        table.content[rows],
        [table.looks.get(row, Look()) for row in rows.tolist()] if detail > CONTENT else (),
        {i: one.error for i, one in broken.items() if one.error},
        frozenset(i for i, one in broken.items() if one.content is None),
    )


def stored_numbers(file: Path, count: int) -> NDArray[np.int64] | None:
    """One number for each of some samples (N,), as an earlier run has computed them."""
    try:
        content = file.read_bytes()
    except OSError:
        return None
    return np.frombuffer(content, "<i8") if len(content) == 8 * count else None


def store_numbers(file: Path, numbers: NDArray[np.int64]) -> None:
    """Keep numbers for all runs on the same files."""
    write_atomically(file, lambda path: path.write_bytes(np.ascontiguousarray(numbers, "<i8").tobytes()))


def _read(
    x: ImageFiles, rows: NDArray[np.int64], detail: int, progress: Progress | None
) -> Iterator[tuple[NDArray[np.int64], list[ReadFile]]]:
    # Warning filters are global, so they apply to the threads. Decoders warn about EXIF data, which do not matter here.
    with warnings.catch_warnings(), ThreadPoolExecutor(min(8, 2 * cores()), "crosstail-examine") as pool:
        warnings.simplefilter("ignore")
        for start in range(0, len(rows), _ROWS):
            some = rows[start : start + _ROWS]
            yield some, list(pool.map(lambda i: _look(x, int(i), detail), some))
            if progress:
                progress("reading images", start + len(some), len(rows))


def _look(x: ImageFiles, i: int, detail: int) -> ReadFile:
    _, name = x.source(i)
    hashed = None
    try:
        content = x.content(i)
        hashed = int.from_bytes(digest(content), "little", signed=True)
        if detail == CONTENT:
            return ReadFile(hashed)
        grey = thumbnail(read_image(content, at_least=DECODED, name=name)) if detail == PIXELS else None
        return ReadFile(hashed, Look(*header(content, name), grey, grey is not None and bool(are_blank(grey[None]))))
    except BrokenImage as error:
        return ReadFile(hashed, error=error)
    except (OSError, MemoryError) as error:
        return ReadFile(hashed, error=error, passing=True)
