"""A page to look at photos with a model's answers, the least sure first, and to confirm or correct them."""

import base64
import hashlib
import io
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from crosstail.data.images.files import ImageFiles
from crosstail.reports.document import html
from crosstail.storage import write_whole

MOST = 10_000  # photos of a page
SIZE = 50_000_000  # bytes of all pictures together, as text
SIDES, QUALITIES = (240, 160, 112, 64), (80, 60, 40, 20)
SHOWN = 9  # classes of a photo, one for each digit key
UNLIKE = "unlike anything in training"
PART = 500  # pictures that the page reads at a time


class Thumbnails:
    """JPEGs of photos by number, made from what the model sees; called with a photo's pixels whenever it is decoded."""

    def __init__(self, photos: int) -> None:
        self.most, self.made = min(40_000, SIZE * 3 // 4 // max(1, min(photos, MOST))), dict[int, bytes]()
        self.side = next((side for side in SIDES if side * side // 6 <= self.most), SIDES[-1])

    def __call__(self, row: int, pixels: NDArray[np.uint8]) -> None:
        if row not in self.made:
            image = Image.fromarray(pixels)
            image.thumbnail((self.side, self.side), Image.Resampling.BILINEAR)
            self.made[row] = next((jpeg for jpeg in _smaller(image) if len(jpeg) <= self.most), b"")

    def of(self, photos: ImageFiles, rows: Sequence[int]) -> Iterator[str]:
        """The pictures of some photos as addresses; those that have not been decoded yet are read."""

        def picture(row: int) -> str:
            if row not in self.made:
                try:
                    self(row, photos.base(row))
                except (OSError, ValueError):  # it was removed since
                    self.made[row] = b""
            return f"data:image/jpeg;base64,{base64.b64encode(self.made[row]).decode()}"

        with ThreadPoolExecutor(photos.workers) as pool:
            yield from pool.map(picture, rows)


def _smaller(image: Image.Image) -> Iterator[bytes]:
    for quality in (*QUALITIES, *QUALITIES[-1:]):
        stream = io.BytesIO()
        image.save(stream, "JPEG", quality=quality)
        yield stream.getvalue()
    image.thumbnail((SIDES[-1], SIDES[-1]))
    image.save(stream := io.BytesIO(), "JPEG", quality=QUALITIES[-1])
    yield stream.getvalue()


@dataclass
class Review:
    """Answers for photos, collected a part at a time."""

    photos: ImageFiles
    names: Sequence[str]
    classes: Sequence[str]
    sites: Sequence[str | None]
    asked: bool = False
    """Whether photos are marked that need a look."""
    thumbnails: Thumbnails = field(init=False)
    parts: list[tuple[NDArray[Any], ...]] = field(default_factory=list)
    flags: list[Sequence[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.thumbnails = Thumbnails(len(self.names))

    @property
    def watched(self) -> ImageFiles:
        """The photos, such that a thumbnail is made of each when it is decoded."""
        return self.photos.watched(self.thumbnails) if len(self.names) <= MOST else self.photos

    def add(
        self,
        rows: NDArray[np.int64],
        probabilities: NDArray[np.floating],
        members: NDArray[np.bool_] | None,
        flags: Sequence[Sequence[str]],
    ) -> None:
        """Take the answers for some photos, by row, with their prediction sets and why to look at them."""
        best = np.argsort(-probabilities, axis=1, kind="stable")[:, :SHOWN]
        inside = np.take_along_axis(members, best, 1) if members is not None else np.arange(best.shape[1]) == 0
        size = np.ones(len(rows), np.int64) if members is None else members.sum(1)
        p, inside = np.take_along_axis(probabilities, best, 1), np.broadcast_to(inside, best.shape)
        self.flags.extend(flags)
        self.parts.append((rows, best, p, inside, size))

    def save(self, out: Path, title: str) -> None:
        """Write the page, with flagged photos and those with the least sure answers first."""
        rows, best, p, inside, size = (np.concatenate(each) for each in zip(*self.parts, strict=True))
        look, unlike = (np.array(of) for of in zip(*((bool(own), UNLIKE in own) for own in self.flags), strict=True))
        order = np.lexsort((p[:, 0], ~look, ~unlike))[:MOST]
        notes = [f"{int(look.sum()):,} of {len(rows):,} photos need a look. The least sure come first."]
        if not self.asked and not look.any():
            notes = [
                f"{len(rows):,} photos, the least sure first. With `--coverage`, those that need a look are marked."
            ]
        if unlike.any():
            notes.append(f"{int(unlike.sum()):,} are {UNLIKE}, so their answers mean little. They come first.")
        if len(rows) > MOST:
            notes.append(f"Only the first {MOST:,} are on this page.")
        photos = [self._photo(int(rows[i]), best[i], p[i], inside[i], int(size[i]), self.flags[i]) for i in order]
        pictures = [*self.thumbnails.of(self.photos, rows[order].tolist())]
        data = {
            "photos": photos,
            "classes": list(self.classes),
            "flags": sorted({flag for flags in self.flags for flag in flags}),
        }
        key = hashlib.sha256("\n".join(sorted(photo["path"] for photo in photos)).encode()).hexdigest()[:16]
        data |= {"key": key, "part": PART, "file": f"{out.stem}-labels.csv"}
        parts = [html.data(pictures[start : start + PART]) for start in range(0, len(pictures), PART)]
        page = html.template("review.html.jinja").render(title=title, notes=notes, data=html.data(data), pictures=parts)
        write_whole(out, page.encode())

    def _photo(
        self,
        row: int,
        best: NDArray[np.int64],
        p: NDArray[Any],
        inside: NDArray[np.bool_],
        size: int,
        flags: Sequence[str],
    ) -> dict[str, Any]:
        path = Path(self.names[row]).absolute()
        about: dict[str, Any] = {
            "name": self.names[row],
            "path": str(path),
            "uri": path.as_uri(),
            "site": self.sites[row],
        }
        kept = slice(None, max(3, int(np.flatnonzero(inside).max(initial=0)) + 1))
        about |= {"classes": best[kept].tolist(), "p": [round(value, 4) for value in p[kept].tolist()]}
        return about | {"inside": inside[kept].tolist(), "more": size - int(inside.sum()), "flags": flags}
