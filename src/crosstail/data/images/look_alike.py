"""Images that look alike: copies that were resized, recoloured or encoded again."""

import os
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from crosstail.data.images.decode import BrokenImage, Pixels, read_image
from crosstail.data.images.files import ImageFiles
from crosstail.progress import Progress

LIMIT = 40_000  # images; comparing all of them takes most of a minute at this size and grows quadratically
SIDE = 32  # pixels of a thumbnail
ALIKE = 0.995  # recoloured or re-encoded copies of product photos correlate above this, different objects below
_SLACK = 0.005  # tolerance of the coarse comparison
_BLOCK = 1024


def thumbnail(image: Pixels) -> NDArray[np.uint8]:
    """A grey thumbnail (32, 32) of an image (H, W, 3)."""
    return np.asarray(Image.fromarray(image).convert("L").resize((SIDE, SIDE), Image.Resampling.BOX))


def thumbnails(x: Any, progress: Progress | None = None) -> NDArray[np.uint8]:
    """Thumbnails (N, 32, 32) of image files or of an array of images; black for images that cannot be decoded.

    Files are decoded at the smallest size their format offers (JPEG: 2 ms per photo).
    """
    found = np.zeros((len(x), SIDE, SIDE), np.uint8)
    for row, image in enumerate(_files(x) if isinstance(x, ImageFiles) else map(thumbnail, x)):
        found[row] = 0 if image is None else image
        if progress:
            progress("reading images", row + 1, len(x))
    return found


def _files(x: ImageFiles) -> Iterator[NDArray[np.uint8] | None]:
    def read(row: int) -> NDArray[np.uint8] | None:
        source, name = x.source(row)
        try:
            return thumbnail(read_image(source, at_least=SIDE, name=name))
        except (BrokenImage, OSError):
            return None

    # Warning filters are global, so they apply to the threads. Decoders warn about EXIF data, which do not matter here.
    with warnings.catch_warnings(), ThreadPoolExecutor(min(8, 2 * (os.cpu_count() or 1))) as pool:
        warnings.simplefilter("ignore")
        for start in range(0, len(x), _BLOCK):  # a future per file would take more memory than the thumbnails
            yield from pool.map(read, range(start, min(start + _BLOCK, len(x))))


def alike(images: NDArray[np.uint8], progress: Progress | None = None, threshold: float = ALIKE) -> NDArray[np.int64]:
    """One number per image (N,): the same for images whose thumbnails (N, 32, 32) correlate by `threshold` or more.

    All pairs are compared at a quarter of the pixels, candidates again at full size. An image that is like two others
    joins them. Uniform images are like no other.
    """
    n, height, width = images.shape
    fine = _standardised(images)
    coarse = _standardised(images.reshape(n, height // 2, 2, width // 2, 2).mean(axis=(2, 4), dtype=np.float32))
    found = [np.zeros((2, 0), np.int64)]
    for start in range(0, n, _BLOCK):
        candidates = np.triu(coarse[start : start + _BLOCK] @ coarse[start:].T >= threshold - _SLACK, 1)
        pairs = np.stack(np.nonzero(candidates)) + start
        pieces = np.array_split(pairs, len(pairs[0]) // _BLOCK + 1, axis=1)
        found += (piece[:, np.einsum("ij,ij->i", *fine[piece]) >= threshold] for piece in pieces)
        if progress:
            progress("searching for near-duplicate images", min(start + _BLOCK, n), n)
    one, other = np.concatenate(found, axis=1)
    from scipy.sparse import coo_array  # here, because few data need it
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(one), np.int8), (one, other)), shape=(n, n))
    _, component = connected_components(graph, directed=False)
    return np.asarray(component, np.int64)


def _standardised(images: NDArray[Any]) -> NDArray[np.float32]:
    """Each image (N, H, W) with zero mean and unit norm, (N, H * W); 0 if its contrast is below two grey levels."""
    z = images.reshape(len(images), images.shape[1] * images.shape[2]).astype(np.float32)
    z -= z.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(z, axis=1, keepdims=True)
    return np.divide(z, norm, out=np.zeros_like(z), where=norm > 2 * np.sqrt(z.shape[1]))
