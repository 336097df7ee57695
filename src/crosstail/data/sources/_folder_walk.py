"""Which files below a folder are images: the one rule for training and prediction."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple

from crosstail.data.images.decode import SUFFIXES
from crosstail.data.sources._folder_layout import Parts
from crosstail.data.sources._natural_order import natural_key


class FoundImage(NamedTuple):
    """An image file, by its name in its folder."""

    name: str
    size: int


class Listing(NamedTuple):
    """What one folder contains besides hidden entries and other folders; names are sorted."""

    folder: Parts
    images: list[FoundImage]
    others: list[str]


def walk(root: Path, folder: Parts = (), above: frozenset[tuple[int, int]] = frozenset()) -> Iterator[Listing]:
    """A folder and those below it in natural order, also through links; `above` are the inodes on the way to it."""
    path = f"{root}/{'/'.join(folder)}"
    state = os.stat(path)  # noqa: PTH116
    inode = state.st_dev, state.st_ino
    if inode in above:  # a link to a folder that it is in
        return
    folders, images, others = _entries(path)
    yield Listing(folder, images, others)
    for name in folders:
        yield from walk(root, (*folder, name), above | {inode})


def _entries(path: str) -> tuple[list[str], list[FoundImage], list[str]]:
    folders: list[str] = []
    images: list[FoundImage] = []
    others: list[str] = []
    with os.scandir(path) as entries:
        for entry in entries:
            name = entry.name
            if name.startswith("."):
                continue
            if os.path.splitext(name)[1].lower() not in SUFFIXES:  # noqa: PTH122 - called half a million times
                (folders if entry.is_dir() else others).append(name)
                continue
            try:
                found = entry.stat()
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ELOOP):
                    raise
                others.append(name)  # a link that leads nowhere
                continue
            if S_ISREG(found.st_mode):
                images.append(FoundImage(name, found.st_size))
            else:
                (folders if S_ISDIR(found.st_mode) else others).append(name)
    for name in (*folders, *(image.name for image in images)):
        if name.encode(errors="ignore").decode() != name:  # undecodable bytes are kept as surrogates
            raise ValueError(f"{path}: the name {os.fsencode(name)!r} is not UTF-8; rename it")
    return sorted(folders, key=natural_key), sorted(images), sorted(others)
