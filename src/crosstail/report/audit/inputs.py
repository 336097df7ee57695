"""Facts about the inputs: sizes and modes of images, width and validity of embeddings."""

import hashlib
import os
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from crosstail.data.images.decode import FORMATS, BrokenImage, read_image
from crosstail.training.loop import Progress

THUMBNAIL = 32  # pixels per side, grey
CHUNK = 256


@dataclass(frozen=True)
class ImageSummary:
    """Images of one domain, or of all; sizes are (width, height), ranked by area."""

    images: int
    smallest: tuple[int, int]
    median: tuple[int, int]
    largest: tuple[int, int]
    modes: dict[str, int]
    formats: dict[str, int]


@dataclass(frozen=True, eq=False)
class ImageInputs:
    """Facts about images; `broken` ones are excluded from the summaries."""

    overall: ImageSummary
    per_domain: tuple[ImageSummary, ...]
    broken: tuple[tuple[str, str], ...]  # name and reason
    blank: tuple[str, ...]  # images of a single colour


@dataclass(frozen=True, eq=False)
class EmbeddingInputs:
    """Facts about embeddings; norms are of the finite rows."""

    width: int
    dtype: str
    not_finite: tuple[int, ...]  # rows with a NaN or infinite value
    constant: tuple[int, ...]  # features with the same value in every row
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
    progress: Progress,
) -> tuple[ImageInputs, NDArray[np.uint8] | None]:
    """Read headers and, if requested, grey thumbnails (N, 32, 32), black for broken images.

    With thumbnails every image is decoded, at the smallest size its format offers (JPEG: 2 ms per photo), so that
    truncated files are found too.
    """
    headers: list[_Header] = []
    # Warning filters are global, so they apply to the threads. Decoders warn about EXIF data, which is not a finding;
    # unreadable files are listed.
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
        # Decode as in training, so that both agree on what is broken.
        pixels = read_image(path, at_least=THUMBNAIL) if thumbnail else None
        with Image.open(path, formats=FORMATS) as image:
            grey = None if pixels is None else _grey(Image.fromarray(pixels))
            return _Header(image.size, image.mode, image.format or "", grey)
    except BrokenImage as error:
        return _Header(broken=error.problem)
    except UnidentifiedImageError:
        return _Header(broken=f"is not one of {', '.join(FORMATS)}")
    except Exception as error:  # decoders raise anything, and one bad file must not end the audit
        return _Header(broken=getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _grey(image: Image.Image) -> NDArray[np.uint8]:
    return np.asarray(image.convert("L").resize((THUMBNAIL, THUMBNAIL), Image.Resampling.BOX))


def _is_blank(thumbnail: NDArray[np.uint8]) -> bool:
    return int(thumbnail.max()) - int(thumbnail.min()) <= 2  # JPEG artefacts are a grey level or two


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
    x: Any, names: Sequence[str], domain: NDArray[np.int64], num_domains: int, *, thumbnails: bool, progress: Progress
) -> tuple[ImageInputs, NDArray[np.uint8] | None, dict[int, bytes]]:
    """The same for an array of images (N, H, W, 3) or anything indexed like one, with a hash of each valid image."""
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
    """Each image with its row, read in chunks as long as none is broken."""
    try:
        yield from zip(rows.tolist(), np.asarray(x[rows]), strict=True)
    except BrokenImage as error:
        if len(rows) == 1:
            broken[int(rows[0])] = error.problem
            return
        for row in rows:
            yield from _each(x, np.array([row]), broken)


def digest(row: NDArray[Any]) -> bytes:
    """Content hash of a row."""
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def read_embeddings(x: Any) -> EmbeddingInputs:
    """Facts about embeddings (N, F)."""
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
    """Row indices 0 to n − 1 in chunks.

    >>> [piece.tolist() for piece in chunks(3, 2)]
    [[0, 1], [2]]
    """
    return [np.arange(start, min(start + size, n)) for start in range(0, n, size)]
