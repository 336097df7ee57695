"""What the inputs are: sizes and modes of images, width and soundness of embeddings."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from crosstail.data.images.decode import FORMATS, BrokenImage, read_image

Report = Callable[[str, int, int], None]
"""Called with a word for what is done, how much is done, and of how much."""

THUMBNAIL = 32  # pixels each way, grey
CHUNK = 256


@dataclass(frozen=True)
class ImageSummary:
    """The images of one domain, or of all; sizes are (width, height), of the smallest, median and largest area."""

    images: int
    smallest: tuple[int, int]
    median: tuple[int, int]
    largest: tuple[int, int]
    modes: dict[str, int]
    formats: dict[str, int]


@dataclass(frozen=True, eq=False)
class ImageInputs:
    """Facts of images; those that cannot be opened are `broken` and in no summary."""

    overall: ImageSummary
    per_domain: tuple[ImageSummary, ...]
    broken: tuple[tuple[str, str], ...]  # name and reason
    blank: tuple[str, ...]  # names of those of one colour


@dataclass(frozen=True, eq=False)
class EmbeddingInputs:
    """Facts of embeddings; the norms are those of the rows that are finite."""

    width: int
    dtype: str
    not_finite: tuple[int, ...]  # rows with NaN or an infinite value
    constant: tuple[int, ...]  # features with one value in all rows
    norms: tuple[float, float, float]  # smallest, median, largest


@dataclass(frozen=True, eq=False)
class _Header:
    size: tuple[int, int] = (0, 0)
    mode: str = ""
    format: str = ""
    thumbnail: NDArray[np.uint8] | None = None
    broken: str = ""


def read_image_files(
    root: Path,
    names: Sequence[str],
    domain: NDArray[np.int64],
    num_domains: int,
    *,
    thumbnails: bool,
    progress: Report,
) -> tuple[ImageInputs, NDArray[np.uint8] | None]:
    """Read the headers, and grey thumbnails (N, 32, 32) if asked for: those of what is broken are black.

    With thumbnails every image is decoded, in the smallest size that its format has (JPEG: 2 ms a photo), so that
    those that end too early are found too.
    """
    headers: list[_Header] = []
    # The filters are the process's, so they hold in the threads too: a library's remark on somebody's EXIF data
    # is no finding, and what cannot be opened is listed.
    with warnings.catch_warnings(), ThreadPoolExecutor(min(8, 2 * (os.cpu_count() or 1))) as pool:
        warnings.simplefilter("ignore")
        for start in range(0, len(names), CHUNK):
            headers += pool.map(lambda name: _header(root / name, thumbnails), names[start : start + CHUNK])
            progress("image files", len(headers), len(names))
    stack = None
    if thumbnails:
        nothing = np.zeros((THUMBNAIL, THUMBNAIL), np.uint8)
        made = [nothing if header.thumbnail is None else header.thumbnail for header in headers]
        stack = np.stack(made) if made else nothing[:0]
    named = list(zip(names, headers, strict=True))
    inputs = ImageInputs(
        overall=_summary(headers),
        per_domain=tuple(_summary([headers[i] for i in np.flatnonzero(domain == d)]) for d in range(num_domains)),
        broken=tuple((name, header.broken) for name, header in named if header.broken),
        blank=tuple(name for name, header in named if header.thumbnail is not None and _is_blank(header.thumbnail)),
    )
    return inputs, stack


def _header(path: Path, thumbnail: bool) -> _Header:
    try:
        # Read as for training, so that what is broken here is what is broken there.
        pixels = read_image(path, at_least=THUMBNAIL) if thumbnail else None
        with Image.open(path, formats=FORMATS) as image:
            grey = None if pixels is None else _grey(Image.fromarray(pixels))
            return _Header(image.size, image.mode, image.format or "", grey)
    except BrokenImage as error:
        return _Header(broken=error.problem)
    except UnidentifiedImageError:
        return _Header(broken=f"is none of {', '.join(FORMATS)}")
    except Exception as error:  # decoders raise anything on a broken file, and one such file must not end the audit
        return _Header(broken=getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _grey(image: Image.Image) -> NDArray[np.uint8]:
    return np.asarray(image.convert("L").resize((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX))


def _is_blank(thumbnail: NDArray[np.uint8]) -> bool:
    return int(thumbnail.max()) - int(thumbnail.min()) <= 2  # JPEG leaves a grey level or two


def _summary(headers: Sequence[_Header]) -> ImageSummary:
    sound = [header for header in headers if not header.broken]
    sizes = sorted((header.size for header in sound), key=lambda size: (size[0] * size[1], size)) or [(0, 0)]
    return ImageSummary(
        images=len(sound),
        smallest=sizes[0],
        median=sizes[(len(sizes) - 1) // 2],
        largest=sizes[-1],
        modes=dict(Counter(header.mode for header in sound).most_common()),
        formats=dict(Counter(header.format for header in sound).most_common()),
    )


def read_image_array(
    x: Any, names: Sequence[str], domain: NDArray[np.int64], num_domains: int, *, thumbnails: bool, progress: Report
) -> tuple[ImageInputs, NDArray[np.uint8] | None, dict[int, bytes]]:
    """The same of images (N, H, W, 3) in memory, or of what is indexed like them, and a hash of each sound one."""
    size = int(x.shape[2]), int(x.shape[1])
    blank: list[str] = []
    broken: dict[int, str] = {}
    hashes: dict[int, bytes] = {}
    grey = np.zeros((len(x) if thumbnails else 0, THUMBNAIL, THUMBNAIL), np.uint8)
    for rows in chunks(len(x)):
        for row, image in _each(x, rows, broken):
            hashes[row] = digest(image)
            blank += [names[row]] * bool((np.ptp(image, axis=(0, 1)) <= 2).all())
            if thumbnails:
                grey[row] = _grey(Image.fromarray(image))
        progress("images", int(rows[-1]) + 1, len(x))

    def summary(rows: NDArray[np.int64]) -> ImageSummary:
        n = len(rows) - sum(row in broken for row in rows.tolist())
        kind = "array" if isinstance(x, np.ndarray) else "resized"
        return ImageSummary(n, size, size, size, {"RGB": n}, {kind: n})

    inputs = ImageInputs(
        overall=summary(np.arange(len(x))),
        per_domain=tuple(summary(np.flatnonzero(domain == d)) for d in range(num_domains)),
        broken=tuple((names[row], problem) for row, problem in broken.items()),
        blank=tuple(blank),
    )
    return inputs, grey if thumbnails else None, hashes


def _each(x: Any, rows: NDArray[np.int64], broken: dict[int, str]) -> Iterator[tuple[int, NDArray[np.uint8]]]:
    """Every image with its row, several at a time as long as none is broken."""
    try:
        yield from zip(rows.tolist(), np.asarray(x[rows]), strict=True)
    except BrokenImage as error:
        if len(rows) == 1:
            broken[int(rows[0])] = error.problem
            return
        for row in rows:
            yield from _each(x, np.array([row]), broken)


def digest(row: NDArray[Any]) -> bytes:
    """What equal rows have in common, and others not."""
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def read_embeddings(x: Any) -> EmbeddingInputs:
    """Facts of embeddings (N, F)."""
    lowest, highest = np.full(x.shape[1], np.inf), np.full(x.shape[1], -np.inf)
    norms, wrong = [np.zeros(0)], [np.zeros(0, np.int64)]
    for rows in chunks(len(x), 4096):
        values = np.asarray(x[rows], np.float64)
        finite = np.isfinite(values).all(axis=1)
        wrong.append(rows[~finite])
        norms.append(np.linalg.norm(values[finite], axis=1))
        lowest = np.minimum(lowest, values[finite].min(axis=0, initial=np.inf))
        highest = np.maximum(highest, values[finite].max(axis=0, initial=-np.inf))
    norm = np.concatenate(norms) if sum(map(len, norms)) else np.zeros(1)
    return EmbeddingInputs(
        width=int(x.shape[1]),
        dtype=str(x.dtype),
        not_finite=tuple(np.concatenate(wrong).tolist()),
        constant=tuple(np.flatnonzero(lowest == highest).tolist()),
        norms=(float(norm.min()), float(np.median(norm)), float(norm.max())),
    )


def chunks(n: int, size: int = CHUNK) -> list[NDArray[np.int64]]:
    """The row numbers 0 to n − 1 in pieces.

    >>> [piece.tolist() for piece in chunks(3, 2)]
    [[0, 1], [2]]
    """
    return [np.arange(start, min(start + size, n)) for start in range(0, n, size)]
