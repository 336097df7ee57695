"""Files that appear whole or not at all, folders that one of several processes moves, and JSON that is checked."""

import errno
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import fields, is_dataclass
from glob import escape
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import msgspec

from crosstail.discovery import suggestion

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

try:
    import fcntl
except ModuleNotFoundError:  # Windows, where what a killed process has left stays
    fcntl = None  # type: ignore[assignment]

T = TypeVar("T")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file beside the target to write to, which then replaces it: readers see the old content or all of the new.

    What killed processes have left there is removed; a lock shows which files are still being written.
    """
    if path.exists() and not path.is_file():
        raise ValueError(f"{path} is a folder or a device, expected a file")
    for abandoned in path.parent.glob(f".*.part.{escape(path.name)}") if fcntl else ():
        with suppress(OSError), abandoned.open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            abandoned.unlink()
    partial, own = _locked(path)
    try:
        with own:
            yield partial
            if fcntl:
                partial.replace(path)  # while it is locked, so that nobody takes it for abandoned
        if not fcntl:
            partial.replace(path)  # Windows renames closed files only
    except BaseException:
        partial.unlink(missing_ok=True)  # a full disk needs the space
        raise


def _locked(path: Path) -> tuple[Path, BinaryIO]:
    """A new file beside another one, locked; another process may remove it before it is, so that it takes a second."""
    while True:
        partial = path.with_name(f".{os.urandom(6).hex()}.part.{path.name}")
        with naming(path):
            own = partial.open("wb")
        with suppress(OSError):  # not every file system has locks
            if fcntl:
                fcntl.flock(own, fcntl.LOCK_EX)
        if not fcntl or os.fstat(own.fileno()).st_nlink:
            return partial, own
        own.close()


@contextmanager
def only_process(folder: Path) -> Iterator[None]:
    """Refuse a folder in which another process works; the lock is on the folder itself, and ends with the process."""
    if not fcntl:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with suppress(OSError):  # not every file system has locks
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise ValueError(f"another process works in {folder}: wait for it, or choose another --out") from None
        yield
    finally:
        os.close(handle)


@contextmanager
def scratch_array(beside: Path, shape: tuple[int, ...]) -> "Iterator[NDArray[np.float32]]":
    """An array of float32 on the disk of a file that is to be written, without a name, so that it never stays.

    Its space is allocated first: on a full disk, writing to a memory map would kill the process.
    """
    import numpy as np

    with ExitStack() as stack:
        with naming(beside):
            beside.parent.mkdir(parents=True, exist_ok=True)
            file = stack.enter_context(TemporaryFile(dir=beside.parent))
            size = max(1, 4 * math.prod(shape))
            file.truncate(size)
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
        yield np.memmap(file, np.float32, "r+", shape=shape)


def write_whole(path: Path, content: bytes | memoryview) -> None:
    """Write a file whole or not at all."""
    with replacing(path) as partial, naming(path), partial.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, whole or not at all."""
    write_whole(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def read_json(path: Path, kind: type[T]) -> T:
    """Read a JSON file as a typed value; the error for another shape names the place inside the file."""
    return decode(path.read_bytes(), kind, path)


def decode(content: bytes | str, kind: type[T], source: Path | str) -> T:
    """Decode JSON from `source` as a typed value.

    >>> decode(b'[1, "2"]', list[int], "f.json")
    Traceback (most recent call last):
    ValueError: f.json: expected `int`, got `str` - at `$[1]`
    """
    try:
        if is_dataclass(kind):
            _refuse_unknown(msgspec.json.decode(content), kind)
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        text = str(error)
        raise ValueError(f"{source}: {text[:1].lower()}{text[1:]}") from None


def _refuse_unknown(raw: Any, kind: Any) -> None:
    """Refuse keys that a dataclass does not have: msgspec would silently ignore them."""
    known = {f.name for f in fields(kind)}
    unknown = sorted(set(raw) - known) if isinstance(raw, dict) else []
    if unknown:
        raise ValueError(f"unknown key {unknown[0]!r}: {suggestion(unknown[0], sorted(known))}")


@contextmanager
def naming(file: Path) -> Iterator[None]:
    """Name the file in file-system errors; the one of a full disk has no name."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(file)) from None


def move(folder: Path, to: Path) -> bool:
    """Move a folder to an unused path; False if another process was first: of several that try, one succeeds."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        folder.rename(to)
    except FileNotFoundError:
        return to.exists()  # a network file system may retry a move whose reply was lost
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def names(folder: Path) -> list[str]:
    """The names in a folder, sorted; none if the folder does not exist."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries)
    except FileNotFoundError:
        return []
