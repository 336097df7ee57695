"""Images that look alike: copies that were resized, encoded again, recoloured, mirrored, cropped or marked."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from crosstail.data.images.same_photo import Photos, halved, smoothing
from crosstail.progress import Progress

VERSION = 2  # of what is alike; part of the key of the cache
LIMIT = 40_000  # images; comparing all of them takes half a minute at this size and grows quadratically
_ALIKE = 0.9  # of the outlines of copies: of those with a tenth of the width cut off, one in twenty is below
_CELLS = 6  # per side; finer ones find fewer cropped copies, coarser ones propose more pairs that are none
_BLOCK = 1024

Floats = NDArray[np.float32]


def alike(images: NDArray[np.uint8], progress: Progress | None = None) -> NDArray[np.int64]:
    """One number per image (N,): the same for images whose grey thumbnails (N, 64, 64) show the same photo.

    All pairs are compared by their outlines, and those with similar ones in detail (`Photos.same`). An image that is
    like two others joins them. Uniform images are like no other.
    """
    n, found = len(images), [np.zeros((2, 0), np.int64)]
    photos = Photos(images)
    for done, pairs, mirrored in _candidates(images):
        found.append(pairs[:, photos.same(pairs, mirrored)])
        if progress:
            progress("searching for near-duplicate images", done, n)
    return connected(np.concatenate(found, axis=1), n)


def connected(edges: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The component (N,) of each of some nodes, given the edges (2, E)."""
    from scipy.sparse import coo_array  # here, because few data need it
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(edges.shape[1], np.int8), tuple(edges)), shape=(nodes, nodes))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _candidates(images: NDArray[np.uint8]) -> Iterator[tuple[int, NDArray[np.int64], NDArray[np.bool_]]]:
    """Pairs (2, P) with similar outlines, and which of them are similar only if one is mirrored, block by block."""
    even, odd = _outlines(images)
    for start in range(0, len(images), _BLOCK):
        block = slice(start, start + _BLOCK)
        similar = odd[block] @ odd[start:].T
        np.abs(similar, out=similar)
        similar += even[block] @ even[start:].T
        first, second = np.divmod(np.flatnonzero(similar >= _ALIKE), len(images) - start)
        pairs = np.stack([first, second])[:, first < second] + start
        mirrored = np.einsum("ij,ij->i", odd[pairs[0]], odd[pairs[1]]) < 0
        yield min(start + _BLOCK, len(images)), pairs, mirrored


def _outlines(images: NDArray[np.uint8]) -> tuple[Floats, Floats]:
    """Two parts of the normalised outlines of images (N, K), which a mirrored image shares but for the other's sign.

    The outlines are edges by place and direction, relative to the contrast around them: their strength, and the
    cosine and sine of two and of four times their angle, in overlapping cells.
    """
    n, side = len(images), images.shape[1] // 2
    around, half = smoothing(side, 6.0), _CELLS // 2
    centres = (np.arange(_CELLS)[:, None] + 0.5) * side / _CELLS - 0.5
    pool = (1 - np.abs(np.arange(side) - centres) * _CELLS / side).clip(0).astype(np.float32)
    even, odd = np.zeros((2, n, 5 * half * _CELLS), np.float32)
    for start in range(0, n, _BLOCK):
        grey = halved(images[start : start + _BLOCK])
        gy, gx = np.gradient(grey, axis=(1, 2))
        strength = np.hypot(gx, gy)
        weight = np.sqrt(strength / (around @ strength @ around + 4))
        strength = strength * strength + np.float32(1e-3)
        cos, sin = (gx * gx - gy * gy) / strength, 2 * gx * gy / strength
        terms = [np.ones_like(cos), cos, cos * cos - sin * sin, sin, 2 * cos * sin]
        cells = np.stack([pool @ (weight * term) @ pool.T for term in terms], axis=1)
        cells[:, 1:] *= np.sqrt(2)
        flipped = cells[..., ::-1].copy()
        flipped[:, 3:] *= -1
        size = np.sqrt((cells**2).sum(axis=(1, 2, 3))).clip(1e-6) * np.where(grey.std(axis=(1, 2)) > 2, 2, np.inf)
        for part, values in ((even, cells + flipped), (odd, cells - flipped)):
            values = values[..., :half].reshape(len(grey), -1)
            part[start : start + _BLOCK] = values * (np.sqrt(2) / size)[:, None].astype(np.float32)
    return even, odd
