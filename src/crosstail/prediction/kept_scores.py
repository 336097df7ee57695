"""Scores of many inputs, kept on disk until the output is written, so that an interrupted command can resume."""

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.lib.format import open_memmap
from numpy.typing import NDArray

from crosstail.storage import naming

MARK, SCORES = "inputs.sha256", "log_p.npy"
BLOCK = 1 << 16  # rows checked at a time
MOST = 2**29  # probabilities that may be in memory at once: 2 GiB


class KeptScores:
    """Log probabilities (N, C), and which rows are done.

    They are in memory, or in a folder that an earlier command may have left. `mark` says which inputs and model the
    folder is for; what another command has left there is removed.
    """

    def __init__(self, shape: tuple[int, int], folder: Path | None = None, mark: str = "") -> None:
        if shape[0] * shape[1] > MOST:
            size = f"{shape[0]:,} inputs × {shape[1]:,} classes are too many probabilities for one call"
            raise ValueError(f"{size}: give at most {max(1, MOST // shape[1]):,} inputs at a time")
        self.folder = folder
        self.done = np.zeros(shape[0], bool)
        self.log_p: NDArray[np.float32]
        if folder is None:
            self.log_p = np.empty(shape, np.float32)
            return
        if not (folder / MARK).exists() or (folder / MARK).read_text(encoding="utf-8") != mark:
            shutil.rmtree(folder, ignore_errors=True)
            _make(folder, shape)
            (folder / MARK).write_text(mark, encoding="utf-8")
        self.log_p = open_memmap(folder / SCORES, "r+")
        for start in range(0, shape[0], BLOCK):
            self.done[start : start + BLOCK] = _complete(self.log_p[start : start + BLOCK])

    def add(self, rows: NDArray[np.int64], log_p: NDArray[np.float32]) -> None:
        """Take the scores of some rows."""
        self.log_p[rows] = log_p
        self.done[rows] = True

    def remove(self) -> None:
        """Remove the folder, once the output is written."""
        if self.folder is not None:
            shutil.rmtree(self.folder)


def _make(folder: Path, shape: tuple[int, int]) -> None:
    """Create a file of zeros and allocate its space: on a full disk, writing to a memory map would kill the process."""
    folder.mkdir(parents=True)
    with naming(folder / SCORES):
        open_memmap(folder / SCORES, "w+", np.float32, shape)
        if hasattr(os, "posix_fallocate"):
            with (folder / SCORES).open("r+b") as file:
                os.posix_fallocate(file.fileno(), 0, (folder / SCORES).stat().st_size)


def _complete(log_p: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Which rows have been written whole: their probabilities sum to 1, where those of zeros sum to C."""
    return (np.abs(np.exp(log_p).sum(axis=1) - 1) < 1e-3) & (log_p.shape[1] > 1)


def mark_of(result: Path, sources: Sequence[Path], domain: NDArray[np.int64]) -> str:
    """What identifies scores: the run, the files with their sizes and times, and the domains."""
    digest = hashlib.sha256(result.read_bytes())
    for source in sources:
        about = source.stat()
        digest.update(f"{source} {about.st_size} {about.st_mtime_ns}\n".encode(errors="surrogateescape"))
    digest.update(domain.tobytes())
    return digest.hexdigest()
