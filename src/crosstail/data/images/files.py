"""Image files as an array that is decoded when it is indexed."""

import hashlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import PIL
import pyarrow as pa
from numpy.typing import NDArray

from crosstail.cache import cache_folder
from crosstail.data.activations import Activations
from crosstail.data.images.decode import VERSION, Pixels, base_size, evaluation_view, read_bytes, read_image
from crosstail.data.images.decoded_cache import DecodedCache
from crosstail.machine import cores

AnyPath = str | os.PathLike[str]

RESOLUTION = 224


_KEPT = 64 << 20  # bytes of files in memory, so that small data are read from disk only once

Watcher = Callable[[int, Pixels], None]
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


def default_workers() -> int:
    """One thread per core available to this process, at most 16."""
    return min(16, cores())


_tables: WeakValueDictionary[tuple[Path, str], FileTable] = WeakValueDictionary()


class ImageFiles:
    """Image files as an array (N, S, S, 3) of uint8; indexing decodes their evaluation views.

    Paths are relative to `root`. Every view is taken from the same intermediate, the `base`: the image reduced by a
    whole factor so that its shorter side has at least 8/7 of the resolution. A view is therefore the same whether its
    base was just decoded or read from a `DecodedCache`.
    """

    ndim: ClassVar[int] = 4
    dtype: ClassVar[np.dtype[np.uint8]] = np.dtype(np.uint8)
    in_files: ClassVar[bool] = True  # whether each image is a file of its own below `root`

    def __init__(
        self,
        root: AnyPath,
        paths: Any,  # strings, or an Arrow array of them: as Python objects, half a million paths take 60 MB
        *,
        sizes: NDArray[np.int64] | None = None,
        resolution: int = RESOLUTION,
        workers: int | None = None,
    ) -> None:
        if resolution < 1:
            raise ValueError(f"resolution is {resolution}, expected 1 or more pixels")
        self.root = Path(root)
        self.resolution = resolution
        self.workers = workers  # threads that decode; by default one per core
        if isinstance(paths, pa.ChunkedArray):
            paths = paths.combine_chunks()
        self._paths = paths if isinstance(paths, pa.Array) else _as_text(paths)
        self._sizes = sizes
        self.rows = np.arange(len(self._paths))  # into the index, which all parts of a data set share
        self.table = FileTable(len(self._paths))
        if self.in_files:  # data that are loaded again, as without their broken images, are not read again
            self.table = _tables.setdefault((self.root.resolve(), _checksum(self._paths, self.rows)), self.table)
        self._cache: DecodedCache | None = None
        self._watcher: Watcher | None = None
        self.whole = False  # whether the evaluation view is the whole image, squeezed

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        return len(self), self.resolution, self.resolution, 3

    def __getitem__(self, rows: Any) -> Pixels:
        """Evaluation views (B, S, S, 3) of rows given as numbers, a slice or a mask, or (S, S, 3) of a single row."""
        if isinstance(rows, int | np.integer):
            return self.view(self.base(int(rows)))
        chosen = np.arange(len(self))[rows]
        out = np.empty((len(chosen), *self.shape[1:]), np.uint8)

        def decode(i: int) -> None:
            out[i] = self.view(self.base(int(chosen[i])))

        with ThreadPoolExecutor(self.workers or default_workers(), "crosstail-decode") as pool:
            try:
                list(pool.map(decode, range(len(chosen))))
            finally:
                pool.shutdown(cancel_futures=True)
        return out

    def view(self, base: Pixels) -> Pixels:
        """The evaluation view (S, S, 3) of a base."""
        return evaluation_view(base, self.resolution, whole=self.whole)

    def base(self, i: int, content: bytes | None = None) -> Pixels:
        """The intermediate (H, W, 3) from which the views of row i are taken; its content may have been read."""
        row = int(self.rows[i])
        state = self._state(row) if self._cache else (0, 0)
        pixels = self._cache.read(row, *state) if self._cache else None
        if pixels is None:
            given = self.content(i) if content is None else content
            pixels = read_image(given, at_least=base_size(self.resolution), name=self._source(row)[1])
            if self._cache:
                self._cache.write(row, *state, pixels)
        if self._watcher:
            self._watcher(row, pixels)
        return pixels

    def content(self, i: int) -> bytes:
        """The bytes of row i's file, which is read again only if it has changed or did not fit in memory."""
        row = int(self.rows[i])
        source, name = self._source(row)
        if isinstance(source, bytes):
            return source
        state = self._state(row)
        content = self.table.kept(row, state)
        if content is None:
            content = read_bytes(source, name)
            self.table.keep(row, state, content)
        return content

    def take(self, rows: Any) -> "ImageFiles":
        """A subset, by row numbers, a slice or a mask; no file is read."""
        return self._changed(rows=self.rows[rows])

    def at_resolution(self, resolution: int, whole: bool = False) -> "ImageFiles":
        made, cache = self._changed(resolution=resolution, whole=whole), self._cache
        return made.cached(max_bytes=cache.max_bytes, folder=cache.folder.parent) if cache else made

    def cached(self, *, max_bytes: int | None = None, folder: Path | None = None) -> "ImageFiles":
        """The same files, with decoded images cached on disk up to `max_bytes`, or what suits the disk."""
        key = f"{self.root.resolve()} {self._index_checksum()} {base_size(self.resolution)} {VERSION} {PIL.__version__}"
        path = (folder or cache_folder() / "decoded") / hashlib.sha256(key.encode()).hexdigest()[:32]
        return self._changed(_cache=DecodedCache(path, len(self._paths), max_bytes=max_bytes))

    def watched(self, watcher: Watcher) -> "ImageFiles":
        """The same files; the watcher is told the number and the pixels of each image that is decoded."""
        return self._changed(_watcher=watcher)

    def paths(self, rows: Any = slice(None)) -> list[str]:
        return self._paths.take(pa.array(np.atleast_1d(self.rows[rows]))).to_pylist()

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of the paths and sizes of these files; a copy on another machine has the same."""
        if np.array_equal(self.rows, np.arange(len(self._paths))):  # no copy of all paths
            return self._index_checksum()
        return _checksum(self._paths.take(pa.array(self.rows)), self._all_sizes[self.rows])

    def _index_checksum(self) -> str:
        return _checksum(self._paths, self._all_sizes)

    @cached_property
    def _all_sizes(self) -> NDArray[np.int64]:
        if self._sizes is None:
            self._sizes = np.array([self._state(row)[0] for row in range(len(self._paths))], np.int64)
        return self._sizes

    def states(self) -> NDArray[np.int64]:
        """Sizes and modification times (N, 2) of the files as they are now."""
        return np.array([self._state(row) for row in self.rows.tolist()], np.int64).reshape(-1, 2)

    def fingerprint(self, states: NDArray[np.int64] | None = None) -> str:
        """SHA-256 of paths, sizes and modification times on this machine, and of the decoder's version."""
        states = self.states() if states is None else states
        paths = self._paths.take(pa.array(self.rows))
        found = f"{self.root.resolve()} {_checksum(paths, states.ravel())} {VERSION} {PIL.__version__}"
        return hashlib.sha256(found.encode()).hexdigest()

    def _changed(self, **attributes: Any) -> "ImageFiles":
        made = copy(self)
        made.__dict__.pop("checksum", None)
        made.__dict__.update(attributes)
        return made

    def source(self, i: int) -> tuple[Path | bytes, str]:
        """The file of row i, or its bytes, and a name for messages."""
        return self._source(int(self.rows[i]))

    # The two methods that images outside a folder override (see sources/_hugging_face.py):

    def _state(self, row: int) -> State:
        """Size and modification time of an image: both change with its content."""
        return file_state(f"{self.root}/{self._paths[row].as_py()}")

    def _source(self, row: int) -> tuple[Path | bytes, str]:
        path = self._paths[row].as_py()
        return self.root / path, path


Samples = NDArray[Any] | ImageFiles | Activations


def _as_text(paths: Sequence[str]) -> Any:
    try:
        return pa.array(paths, pa.string())
    except UnicodeEncodeError:  # undecodable bytes are kept as surrogates
        odd = next(path for path in paths if path.encode(errors="ignore").decode() != path)
        raise ValueError(f"the name {os.fsencode(odd)!r} is not UTF-8; rename it") from None


def file_state(path: str) -> State:
    """Size and modification time of a file, or (−1, 0): reading it will raise the error."""
    try:
        found = os.stat(path)  # noqa: PTH116 - a Path would cost more than the call
    except OSError:
        return -1, 0
    return found.st_size, found.st_mtime_ns


def _checksum(paths: Any, numbers: NDArray[np.int64]) -> str:
    _, ends, text = paths.buffers() if len(paths) else (None, np.zeros(1, np.int32), b"")
    offsets = np.frombuffer(ends, np.int32)[paths.offset : paths.offset + len(paths) + 1]
    digest = hashlib.sha256(np.ascontiguousarray(offsets - offsets[0]).data)
    if offsets[-1] > offsets[0]:
        digest.update(text[int(offsets[0]) : int(offsets[-1])])
    digest.update(np.ascontiguousarray(numbers, "<i8").data)
    return digest.hexdigest()
