"""The source "folder": ROOT/<domain>/<class>/<image>."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path
from stat import S_ISREG
from typing import NamedTuple, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosstail.data.dataset import SPLIT_NAMES, DomainDataset
from crosstail.data.images.decode import SUFFIXES
from crosstail.data.images.files import AnyPath, ImageFiles
from crosstail.data.sources.as_dataset import SourceOptions, as_dataset
from crosstail.data.sources.folder_index import FolderIndex, read_index, write_index
from crosstail.data.sources.natural_order import natural_key, natural_order

EXPECTED = "expected ROOT/<domain>/<class>/<image>"
OR_MANIFEST = f"{EXPECTED}, or a manifest with the columns path, domain, label, split"


def load_folder(path: AnyPath, **options: Unpack[SourceOptions]) -> DomainDataset:
    """Load the images below a folder with the split of own data; domains and classes are in natural order.

    Hidden files and files without an image suffix are ignored. The listing is cached until a folder or a file changes,
    so that the next start does not list half a million files again.
    """
    root = Path(path)
    index = read_index(root)
    if index is None:
        index = scan(root)
        write_index(root, index)
    domains = natural_order(domain for domain, _, _ in index.pairs)
    classes = natural_order(name for _, name, _ in index.pairs)
    counts = [count for *_, count in index.pairs]
    domain = np.repeat([domains.index(d) for d, _, _ in index.pairs], counts)
    y = np.repeat([classes.index(c) for _, c, _ in index.pairs], counts)
    files = ImageFiles(root, index.paths, sizes=index.sizes)
    name = Path(os.path.abspath(root)).name  # noqa: PTH100 - resolve() would follow a link to a folder of another name
    return as_dataset(name, files, y, domain, classes, domains, notes=index.notes, **options)


def scan(root: Path) -> FolderIndex:
    """List all images below a folder in one pass."""
    if not root.is_dir():
        raise ValueError(f"{root}: is not a folder" if root.exists() else f"{root}: there is no such file or folder")
    found = _Scan(root)
    top = found.look("")
    for domain in top.folders:
        classes, images, others = found.look(domain)
        found.ignore(domain, [image[0] for image in images] + others)
        for name in classes:
            found.add(domain, name)
    found.refuse_other_layouts(top)
    found.ignore("", [image[0] for image in top.images] + top.others)
    return found.index()


class _Listing(NamedTuple):
    """The content of a folder, sorted by name, without hidden entries."""

    folders: list[str]
    images: list[tuple[str, int, int]]  # name, size in bytes, time of the last change in ns
    others: list[str]


class _Scan:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.directories: dict[str, int] = {}
        self.pairs: list[tuple[str, str, int]] = []
        self.empty: list[str] = []
        self.ignored: list[str] = []
        self.too_deep: list[str] = []
        self._paths: list[pa.Array] = []
        self._states: list[NDArray[np.int64]] = []  # (n, 2) sizes and times

    def look(self, relative: str) -> _Listing:
        """List one folder, with one `stat` per image."""
        listing = _Listing([], [], [])
        path = f"{self.root}/{relative}"
        self.directories[relative] = os.stat(path).st_mtime_ns  # noqa: PTH116
        with os.scandir(path) as entries:
            for entry in entries:
                name = entry.name
                if name.startswith("."):
                    continue
                if os.path.splitext(name)[1].lower() not in SUFFIXES:  # noqa: PTH122 - called half a million times
                    (listing.folders if entry.is_dir() else listing.others).append(name)
                    continue
                try:
                    found = entry.stat()
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ELOOP):
                        raise
                    listing.others.append(name)  # a link that leads nowhere
                    continue
                if S_ISREG(found.st_mode):
                    listing.images.append((name, found.st_size, found.st_mtime_ns))
                else:
                    listing.folders.append(name)
        for name in (*listing.folders, *(image[0] for image in listing.images)):
            if name.encode(errors="ignore").decode() != name:  # undecodable bytes are kept as surrogates
                raise ValueError(f"{path}: the name {os.fsencode(name)!r} is not UTF-8; rename it")
        return _Listing(sorted(listing.folders, key=natural_key), sorted(listing.images), sorted(listing.others))

    def add(self, domain: str, name: str) -> None:
        """Add the images of a pair."""
        pair = f"{domain}/{name}"
        folders, images, others = self.look(pair)
        self.ignore(pair, others)
        self.too_deep += [f"{pair}/{folder}" for folder in folders]
        if not images:
            self.empty.append(pair)
            return
        self.pairs.append((domain, name, len(images)))
        # To Arrow pair by pair: as Python objects, the paths would take several times the memory.
        self._paths.append(pa.array([f"{pair}/{image[0]}" for image in images], pa.string()))
        self._states.append(np.array([image[1:] for image in images], np.int64))

    def ignore(self, folder: str, names: list[str]) -> None:
        self.ignored += [f"{folder}/{name}" if folder else name for name in names]

    def refuse_other_layouts(self, top: _Listing) -> None:
        splits = [name for name in top.folders if name.lower() in SPLIT_NAMES]
        if self.pairs:
            if len({SPLIT_NAMES[name.lower()] for name in splits}) > 1:
                raise ValueError(f"{self.root}: its folders {', '.join(splits)} are splits, not domains; {OR_MANIFEST}")
            return
        deeper = next((folder for folder in self.too_deep if self.look(folder).images), None)
        if deeper:
            looks = f"ROOT/{'<split>' if splits else '<folder>'}/<domain>/<class>/<image>"
            raise ValueError(f"{self.root}: holds images in {deeper}, which looks like {looks}; {OR_MANIFEST}")
        loose = (*self.ignored, *(image[0] for image in top.images))
        misplaced = next((file for file in loose if Path(file).suffix.lower() in SUFFIXES), None)
        if misplaced:
            looks = "ROOT/<class>/<image>" if "/" in misplaced else "ROOT/<image>"
            found = f"{self.root}: holds images such as {misplaced}, which looks like {looks}"
            raise ValueError(f"{found}; {EXPECTED}, with a folder for each site or style")
        raise ValueError(f"{self.root}: has no images where they are expected; {EXPECTED}")

    def index(self) -> FolderIndex:
        paths, (sizes, times) = pa.concat_arrays(self._paths), np.concatenate(self._states).T.copy()
        return FolderIndex(self.directories, tuple(self.pairs), tuple(self._notes()), paths, sizes, times)

    def _notes(self) -> list[str]:
        domains, classes = {domain for domain, _, _ in self.pairs}, {name for _, name, _ in self.pairs}
        bare = [f for f in self.directories if f and "/" not in f and f not in domains]
        gone = natural_order(name for _, _, name in (pair.partition("/") for pair in self.empty) if name not in classes)
        found = (
            (self.ignored, "files", "ignored: not an image in a class folder"),
            (self.too_deep, "folders", "ignored: inside a class folder"),
            (self.empty, "folders", "without images"),
            (bare, "domains", "without images, left out"),
            (gone, "classes", "without images in any domain, left out"),
        )
        return [f"{_several(names, what)} {why}" for names, what, why in found if names]


def _several(names: Sequence[str], what: str) -> str:
    """The number of names, and the first three: 4 files (a, b, c, …)."""
    what = what if len(names) > 1 else {"classes": "class"}.get(what, what[:-1])
    return f"{len(names)} {what} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"
