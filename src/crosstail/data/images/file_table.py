"""What a process remembers of the files of one index; what has changed since then is not remembered."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

_KEPT = 64 << 20  # bytes of files in memory, so that small data are read from disk only once

State = tuple[int, int]  # size and modification time of a file: both change with its content


class ReadFile(NamedTuple):
    """One file: the hash of its bytes, what it looks like, and why it cannot be read (without a hash) or decoded."""

    content: int | None = None
    look: Any = None
    error: Exception | None = None
    passing: bool = False  # whether the error says nothing about the image, and may be gone next time


class FileTable:
    """Files by row of the index, shared by all parts of it, and the bytes of the first ones that fit."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.content = np.zeros(0, np.int64)  # (N,) hashes; made when something is known
        self._states = np.zeros((0, 2), np.int64)
        self._detail = np.zeros(0, np.int8)
        self.looks: dict[int, Any] = {}
        self.errors: dict[int, ReadFile] = {}
        self._bytes: dict[int, tuple[State, bytes]] = {}
        self._room = _KEPT

    def __reduce__(self) -> tuple[Any, ...]:  # another process finds out for itself
        return FileTable, (self.count,)

    def unknown(self, rows: NDArray[np.int64], states: NDArray[np.int64], detail: int) -> NDArray[np.int64]:
        """Positions in `rows` of the files that have not been examined in this detail."""
        if not len(self.content):
            return np.arange(len(rows))
        return np.flatnonzero((self._detail[rows] < detail) | (self._states[rows] != states).any(axis=1))

    def add(self, rows: NDArray[np.int64], states: NDArray[np.int64], content: NDArray[np.int64], detail: int) -> None:
        """Store the hashes of files that were examined in this detail."""
        if not len(self.content):
            self.content = np.zeros(self.count, np.int64)
            self._states, self._detail = np.zeros((self.count, 2), np.int64), np.zeros(self.count, np.int8)
        self.content[rows], self._states[rows], self._detail[rows] = content, states, detail
        for row in rows.tolist() if self.errors else ():
            self.errors.pop(row, None)

    def describe(self, row: int, found: ReadFile) -> None:
        """Store what else was found out about a file."""
        if found.look is not None:
            self.looks[row] = found.look
        if found.error is not None:
            self.errors[row] = found
            self._detail[row] *= not found.passing

    def keep(self, row: int, state: State, content: bytes) -> None:
        """Keep the bytes of a file if there is room."""
        if row not in self._bytes and len(content) <= self._room:
            self._room -= len(content)
            self._bytes[row] = state, content

    def kept(self, row: int, state: State) -> bytes | None:
        """The bytes of a file that are in memory."""
        before, content = self._bytes.get(row, (None, None))
        return content if before == state else None
