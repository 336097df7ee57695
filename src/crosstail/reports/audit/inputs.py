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

from crosstail.data.dataset import DomainDataset
from crosstail.data.images.decode import FORMATS, BrokenImage, read_image
from crosstail.data.images.files import ImageFiles
from crosstail.data.images.look_alike import SIDE, thumbnail
from crosstail.progress import Progress

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
class _Read:
    size: tuple[int, int] = (0, 0)
    mode: str = ""
    format: str = ""
    thumbnail: NDArray[np.uint8] | None = None
    blank: bool = False
    broken: str = ""


def own_files(dataset: DomainDataset) -> ImageFiles | None:
    """The inputs, if each is an image file of its own; subclasses of ImageFiles keep images elsewhere."""
    return dataset.x if isinstance(dataset.x, ImageFiles) and dataset.x.in_files else None


def read_images(
    dataset: DomainDataset, *, thumbnails: bool, progress: Progress
) -> tuple[ImageInputs, NDArray[np.uint8] | None, dict[int, bytes]]:
    """Facts about images, grey thumbnails (N, 32, 32) if requested, and hashes of valid images that are not files.

    Of files only the headers are read, unless thumbnails are requested: then every image is decoded, at the smallest
    size its format offers (JPEG: 2 ms per photo), so that truncated files are found too. The thumbnails of broken
    images are black.
    """
    files, names, hashes = own_files(dataset), dataset.names(), dict[int, bytes]()
    if files is None:
        found = _read_array(dataset.x, thumbnails, progress, hashes)
    else:
        found = _read_files([files.root / name for name in names], thumbnails, progress)
    rows = [np.flatnonzero(dataset.domain == d).tolist() for d in range(dataset.num_domains)]
    named = list(zip(names, found, strict=True))
    inputs = ImageInputs(
        overall=_summary(found),
        per_domain=tuple(_summary([found[i] for i in own]) for own in rows),
        broken=tuple((name, image.broken) for name, image in named if image.broken),
        blank=tuple(name for name, image in named if image.blank),
    )
    black = np.zeros((SIDE, SIDE), np.uint8)
    grey = [black if image.thumbnail is None else image.thumbnail for image in found] if thumbnails else None
    return inputs, None if grey is None else np.array(grey, np.uint8).reshape(-1, SIDE, SIDE), hashes


def _read_files(paths: Sequence[Path], thumbnails: bool, progress: Progress) -> list[_Read]:
    found: list[_Read] = []
    # Warning filters are global, so they apply to the threads. Decoders warn about EXIF data, which is not a finding;
    # unreadable files are listed.
    with warnings.catch_warnings(), ThreadPoolExecutor(min(8, 2 * (os.cpu_count() or 1))) as pool:
        warnings.simplefilter("ignore")
        for start in range(0, len(paths), CHUNK):
            found += pool.map(lambda path: _file(path, thumbnails), paths[start : start + CHUNK])
            progress("image files", len(found), len(paths))
    return found


def _file(path: Path, with_thumbnail: bool) -> _Read:
    try:
        # Decode as in training, so that both agree on what is broken.
        pixels = read_image(path, at_least=SIDE) if with_thumbnail else None
        with Image.open(path, formats=FORMATS) as image:
            grey = None if pixels is None else thumbnail(pixels)
            blank = grey is not None and _is_blank(grey)
            return _Read(image.size, image.mode, image.format or "", grey, blank)
    except BrokenImage as error:
        return _Read(broken=error.problem)
    except UnidentifiedImageError:
        return _Read(broken=f"is not one of {', '.join(FORMATS)}")
    except Exception as error:  # decoders raise anything, and one bad file must not end the audit
        return _Read(broken=getattr(error, "strerror", None) or str(error) or type(error).__name__)


def _read_array(x: Any, thumbnails: bool, progress: Progress, hashes: dict[int, bytes]) -> list[_Read]:
    """From an array of images (N, H, W, 3) or anything indexed like one, adding a hash of each valid image."""
    size, kind = (int(x.shape[2]), int(x.shape[1])), "array" if isinstance(x, np.ndarray) else "resized"
    found: list[_Read] = []
    for rows in chunks(len(x)):
        for image in _each(x, rows):
            if isinstance(image, BrokenImage):
                found.append(_Read(broken=image.problem))
                continue
            hashes[len(found)] = digest(image)
            grey = thumbnail(image) if thumbnails else None
            found.append(_Read(size, "RGB", kind, grey, _is_blank(image)))
        progress("images", len(found), len(x))
    return found


def _each(x: Any, rows: NDArray[np.int64]) -> Iterator[NDArray[np.uint8] | BrokenImage]:
    """Each image, or its error; read in chunks as long as none is broken."""
    try:
        yield from np.asarray(x[rows])
    except BrokenImage as error:
        if len(rows) == 1:
            yield error
            return
        for row in rows:
            yield from _each(x, np.array([row]))


def _is_blank(image: NDArray[np.uint8]) -> bool:
    return bool((np.ptp(image, axis=(0, 1)) <= 2).all())  # JPEG artefacts are a grey level or two


def _summary(found: Sequence[_Read]) -> ImageSummary:
    valid = [image for image in found if not image.broken]
    sizes = sorted((image.size for image in valid), key=lambda size: (size[0] * size[1], size)) or [(0, 0)]
    return ImageSummary(
        images=len(valid),
        smallest=sizes[0],
        median=sizes[(len(sizes) - 1) // 2],
        largest=sizes[-1],
        modes=dict(Counter(image.mode for image in valid).most_common()),
        formats=dict(Counter(image.format for image in valid).most_common()),
    )


def digest(row: NDArray[Any]) -> bytes:
    """Content hash of a row."""
    return hashlib.blake2b(row.tobytes(), digest_size=16).digest()


def read_embeddings(x: Any) -> EmbeddingInputs:
    """Facts about embeddings (N, F), or other numbers (N, ...)."""
    width = int(np.prod(x.shape[1:]))
    lowest, highest = np.full(width, np.inf), np.full(width, -np.inf)
    norms, wrong = [np.zeros(0)], [np.zeros(0, np.int64)]
    for rows in chunks(len(x), 4096):
        values = np.asarray(x[rows], np.float64).reshape(len(rows), width)
        finite = np.isfinite(values).all(axis=1)
        wrong.append(rows[~finite])
        norms.append(np.linalg.norm(values[finite], axis=1))
        lowest = np.minimum(lowest, values[finite].min(axis=0, initial=np.inf))
        highest = np.maximum(highest, values[finite].max(axis=0, initial=-np.inf))
    norm = np.concatenate(norms) if sum(map(len, norms)) else np.zeros(1)
    return EmbeddingInputs(
        width=width,
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
