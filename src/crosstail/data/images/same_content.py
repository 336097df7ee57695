"""Finding items with equal content."""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from crosstail.data.images.files import file_state

Name = TypeVar("Name", bound=Hashable)

CHUNK = 256  # files hashed between progress reports


def equal(keyed: Iterable[tuple[Name, Hashable]]) -> list[list[Name]]:
    """Groups of two or more names with the same key."""
    names: dict[Hashable, list[Name]] = defaultdict(list)
    for name, key in keyed:
        names[key].append(name)
    return [group for group in names.values() if len(group) > 1]


def equal_files(
    paths: Mapping[Name, Path], progress: Callable[[str, int, int], None] | None = None
) -> list[list[Name]]:
    """Groups of files with the same content; only files of the same size are read."""
    same_size = equal((name, file_state(str(path))[0]) for name, path in paths.items())
    names = [name for group in same_size for name in group]
    found: list[tuple[Name, Hashable]] = []
    with ThreadPoolExecutor(4) as pool:
        for start in range(0, len(names), CHUNK):
            some = names[start : start + CHUNK]
            found += zip(some, pool.map(lambda name: _content(paths[name]) or name, some), strict=True)
            if progress:
                progress("comparing files of the same size", len(found), len(names))
    return equal(found)


def _content(path: Path) -> bytes | None:
    """A hash of the content, or None if the file cannot be read: it then equals no other."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").digest()
    except OSError:
        return None
