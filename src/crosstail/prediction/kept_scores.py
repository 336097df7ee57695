"""Scores of many inputs, kept on disk until the output is written, so that an interrupted command can resume."""

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from crosstail.storage import naming

SCORES = "log_p.npy"
BLOCK = 1 << 24  # scores checked at a time


class KeptScores:
    """Log probabilities (N, C), and which rows are done; in memory, or in a folder that an earlier command has left."""

    def __init__(self, shape: tuple[int, int], folder: Path | None = None) -> None:
        self.done = np.zeros(shape[0], bool)
        self.log_p: NDArray[np.float32]
        if folder is None:
            self.log_p = np.empty(shape, np.float32)
            return
        begun = (folder / SCORES).exists() and (folder / SCORES).stat().st_size > 4 * shape[0] * shape[1]
        if not begun:
            _make(folder, shape)
        self.log_p = open_memmap(folder / SCORES, "r+")
        step = max(1, BLOCK // shape[1])
        for start in range(0, shape[0], step) if begun else ():
            self.done[start : start + step] = _complete(self.log_p[start : start + step])

    def add(self, rows: NDArray[np.int64], log_p: NDArray[np.float32]) -> None:
        self.log_p[rows] = log_p
        self.done[rows] = True


def _make(folder: Path, shape: tuple[int, int]) -> None:
    """Create a file of zeros and allocate its space: on a full disk, writing to a memory map would kill the process."""
    folder.mkdir(parents=True, exist_ok=True)
    with naming(folder / SCORES):
        open_memmap(folder / SCORES, "w+", np.float32, shape)
        if hasattr(os, "posix_fallocate"):
            with (folder / SCORES).open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, (folder / SCORES).stat().st_size)


def _complete(log_p: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which rows have been written whole: their probabilities sum to 1; zeros would sum to C."""
    return (np.abs(np.exp(log_p).sum(axis=1) - 1) < 1e-3) & (log_p.shape[1] > 1)


def mark_of(result: Path, sources: Sequence[Path], domain: NDArray[np.int64]) -> str:
    """What identifies scores: the run, the files with their sizes and times, and the domains."""
    digest = hashlib.sha256(result.read_bytes())
    for source in sources:
        about = source.stat()
        digest.update(f"{source} {about.st_size} {about.st_mtime_ns}\n".encode(errors="surrogateescape"))
    digest.update(domain.tobytes())
    return digest.hexdigest()
