"""The source "folder": ROOT/<domain>/<class>/<image>, and what is like it."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.data.images.decode import HEIC, HEIC_REMEDY
from crosstail.data.images.files import AnyPath, ImageFiles
from crosstail.data.sources._as_dataset import SourceOptions, as_dataset
from crosstail.data.sources._folder_layout import Layout, Parts, layout_of
from crosstail.data.sources._folder_walk import walk
from crosstail.data.sources._natural_order import natural_order, numbered_names

EXPECTED = "expected ROOT/<domain>/<class>/<image>, or ROOT/<class>/<image>"


def load_folder(path: AnyPath, **options: Unpack[SourceOptions]) -> DomainDataset:
    """Load the images below a folder; domains and classes are in natural order.

    Without folders for domains there is one domain, without folders for splits the images get the split of user data
    (see `Layout`). Hidden files and files without an image suffix are ignored.
    """
    root = Path(path)
    found = scan(root)
    splits, domain_of, class_of, counts = zip(*found.pairs, strict=True)
    (domain, domains), (y, classes) = numbered_names(domain_of), numbered_names(class_of)
    split = np.repeat(splits, counts).astype("<U5") if any(splits) else None
    files = ImageFiles(root, found.paths, sizes=found.sizes)
    domain, y = np.repeat(domain, counts), np.repeat(y, counts)
    name = Path(os.path.abspath(root)).name  # noqa: PTH100 - resolve() would follow a link to a folder of another name
    return as_dataset(name, files, y, domain, classes, domains, split=split, notes=found.notes, **options)


class FolderImages(NamedTuple):
    """The images below a folder, pair by pair."""

    pairs: tuple[tuple[str, str, str, int], ...]  # split or "", domain, class, number of images
    notes: tuple[str, ...]
    paths: Any  # Arrow array of strings, relative to the root
    sizes: NDArray[np.int64]


def scan(root: Path) -> FolderImages:
    """List all images below a folder in one pass: 4 s for half a million, so that a cache of it would gain little."""
    if not root.is_dir():
        raise ValueError(f"{root}: is not a folder" if root.exists() else f"{root}: there is no such file or folder")
    return _Scan(root).images_by_pair()


class _Images(NamedTuple):
    paths: pa.Array  # as Python objects, they would take several times the memory
    sizes: NDArray[np.int64]


class _Scan:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.folders: list[Parts] = []  # in natural order
        self.images: dict[Parts, _Images] = {}
        self.heic: list[str] = []  # photos that need pillow-heif, which are images like others where it is installed
        self.others: list[str] = []
        for found in walk(root):
            prefix = "".join(f"{name}/" for name in found.folder)
            self.folders.append(found.folder)
            for name in found.others:
                (self.heic if name.lower().endswith(HEIC) else self.others).append(prefix + name)
            if found.images:
                paths = pa.array([prefix + image.name for image in found.images], pa.string())
                self.images[found.folder] = _Images(paths, np.array([image.size for image in found.images], np.int64))

    def images_by_pair(self) -> FolderImages:
        layout = layout_of({folder: len(images.paths) for folder, images in self.images.items()})
        placed = {folder: place for folder in self.images if (place := layout.place(folder))}
        if not placed:
            raise ValueError(f"{self.root}: {self._nothing()}; {EXPECTED}")
        pairs = tuple((*place, len(self.images[folder].paths)) for folder, place in placed.items())
        used = [self.images[folder] for folder in placed]
        paths = pa.concat_arrays([images.paths for images in used])
        sizes = np.concatenate([images.sizes for images in used])
        notes = [*layout.notes(len(paths)), *self._notes(layout, placed)]
        return FolderImages(pairs, tuple(notes), paths, sizes)

    def _nothing(self) -> str:
        if self.images:
            first = next(iter(self.images.values())).paths[0]
            return f"holds images such as {first}, but no folder for each class"
        return f"holds HEIC photos such as {self.heic[0]}: {HEIC_REMEDY}" if self.heic else "has no images"

    def _notes(self, layout: Layout, placed: dict[Parts, tuple[str, str, str]]) -> list[str]:
        loose = [str(path) for folder, images in self.images.items() if folder not in placed for path in images.paths]
        deeper = ["/".join(folder) for folder in placed if len(folder) > layout.depth]
        full = {folder[:depth] for folder in self.images for depth in range(len(folder) + 1)}
        empty = [folder for folder in self.folders if folder and folder not in full]
        lacking = {"/".join(folder): layout.place(folder) for folder in empty if len(folder) == layout.depth}
        bare = [layout.place((*folder, "")) for folder in empty if len(folder) == layout.depth - 1]
        _, domains, classes = zip(*placed.values(), strict=True)
        whole = f"--group-by '^(?:[^/]+/){{{layout.depth}}}([^/]+)/' keeps each of them together in the split"
        found: tuple[tuple[Sequence[str], str, str], ...] = (
            (self.heic, "HEIC photos", f"ignored: {HEIC_REMEDY}"),
            (loose + self.others, "files", "ignored: not an image in a class folder"),
            (deeper, "folders", f"inside a class folder: part of that class; {whole}"),
            (list(lacking), "folders", "without images"),
            (_other(bare, 1, domains), "domains", "without images, left out"),
            (_other(lacking.values(), 2, classes), "classes", "without images in any domain, left out"),
        )
        return [f"{_several(names, what)} {why}" for names, what, why in found if names]


def _other(places: Iterable[tuple[str, str, str] | None], at: int, known: Sequence[str]) -> tuple[str, ...]:
    return natural_order({place[at] for place in places if place}.difference(known))


def _several(names: Sequence[str], what: str) -> str:
    what = what if len(names) > 1 else {"classes": "class"}.get(what, what[:-1])
    return f"{len(names)} {what} ({', '.join(names[:3])}{', …' if len(names) > 3 else ''})"
