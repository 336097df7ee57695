"""What is found out about samples without training on them."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from crosstail.data.images.decode import BrokenImage, Pixels
from crosstail.data.inputs._hashes import NO_CONTENT

CONTENT, HEADER, PIXELS = 1, 2, 3
"""How far samples are examined: their bytes are hashed; the header of an image is read, too; it is decoded."""

SIDE = 64  # pixels of a thumbnail
DECODED = 2 * SIDE  # least pixels of what it is made from: a JPEG that is decoded at 1/8 is no mean of its pixels

Name = TypeVar("Name", bound=Hashable)


class Look(NamedTuple):
    """An image: its size (width, height) when it stands upright, and if it was decoded, a grey thumbnail (64, 64)."""

    size: tuple[int, int] = (0, 0)
    mode: str = ""
    format: str = ""
    thumbnail: NDArray[np.uint8] | None = None
    blank: bool = False  # of a single colour


@dataclass(frozen=True, eq=False)
class Examined:
    """What was found out about N samples; only images have looks."""

    content: NDArray[np.int64]  # (N,)
    looks: Sequence[Look] = ()
    errors: Mapping[int, Exception] = field(default_factory=dict)  # why a row cannot be read or, if tried, decoded
    unread: frozenset[int] = frozenset()  # rows among them that could not be read at all

    @property
    def hashes(self) -> NDArray[np.int64]:
        """One number per sample (N,), of its bytes; raises the error of the first that cannot be read."""
        for row in sorted(self.unread):
            raise self.errors[row]
        return self.content

    @property
    def problems(self) -> dict[int, str]:
        """Why rows are broken; an error of another kind is raised, as it says nothing about the image."""
        for error in self.errors.values():
            if not isinstance(error, BrokenImage):
                raise error
        return {row: reason(error) for row, error in sorted(self.errors.items())}

    @property
    def thumbnails(self) -> NDArray[np.uint8]:
        """Grey thumbnails (N, 64, 64); black for images that cannot be decoded."""
        black = np.zeros((SIDE, SIDE), np.uint8)
        found = [black if look.thumbnail is None else look.thumbnail for look in self.looks]
        return np.array(found, np.uint8).reshape(-1, SIDE, SIDE)

    def same(self) -> list[list[int]]:
        """Groups of two or more rows with the same content; empty files, and those that cannot be read, are alone."""
        rows = (row for row in range(len(self.content)) if row not in self.unread)
        return equal((row, n) for row in rows if (n := int(self.content[row])) != NO_CONTENT)


def reason(error: Exception) -> str:
    """Why an image cannot be read, in a few words."""
    if isinstance(error, BrokenImage):
        return error.problem
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def equal(keyed: Iterable[tuple[Name, Hashable]]) -> list[list[Name]]:
    """Groups of two or more names with the same key."""
    names: dict[Hashable, list[Name]] = defaultdict(list)
    for name, key in keyed:
        names[key].append(name)
    return [group for group in names.values() if len(group) > 1]


def thumbnail(image: Pixels) -> NDArray[np.uint8]:
    """A grey thumbnail (64, 64) of an image (H, W, 3)."""
    return np.asarray(Image.fromarray(image).convert("L").resize((SIDE, SIDE), Image.Resampling.BILINEAR))


def are_blank(images: Pixels) -> NDArray[np.bool_]:
    """Which of some images (N, H, W, …), or of their thumbnails, have a single colour."""
    spread = np.ptp(images, axis=(1, 2)).reshape(len(images), -1)
    return np.asarray((spread <= 2).all(axis=1))  # JPEG artefacts are a grey level or two
