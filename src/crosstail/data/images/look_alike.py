"""Images that look alike: copies that were resized, recoloured or encoded again."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.progress import Progress

LIMIT = 40_000  # images; comparing all of them takes most of a minute at this size and grows quadratically
ALIKE = 0.995  # recoloured or re-encoded copies of product photos correlate above this, different objects below
_SLACK = 0.005  # tolerance of the coarse comparison
_BLOCK = 1024


def alike(images: NDArray[np.uint8], progress: Progress | None = None) -> NDArray[np.int64]:
    """One number per image (N,): the same for images whose thumbnails (N, 32, 32) correlate by 0.995 or more.

    All pairs are compared at a quarter of the pixels, candidates again at full size. An image that is like two others
    joins them. Uniform images are like no other.
    """
    n, height, width = images.shape
    fine = _standardised(images)
    coarse = _standardised(images.reshape(n, height // 2, 2, width // 2, 2).mean(axis=(2, 4), dtype=np.float32))
    found = [np.zeros((2, 0), np.int64)]
    for start in range(0, n, _BLOCK):
        candidates = np.triu(coarse[start : start + _BLOCK] @ coarse[start:].T >= ALIKE - _SLACK, 1)
        pairs = np.stack(np.nonzero(candidates)) + start
        pieces = np.array_split(pairs, len(pairs[0]) // _BLOCK + 1, axis=1)
        found += (piece[:, np.einsum("ij,ij->i", *fine[piece]) >= ALIKE] for piece in pieces)
        if progress:
            progress("searching for near-duplicate images", min(start + _BLOCK, n), n)
    return connected(np.concatenate(found, axis=1), n)


def connected(edges: NDArray[np.int64], nodes: int) -> NDArray[np.int64]:
    """The component (N,) of each of some nodes, given the edges (2, E)."""
    from scipy.sparse import coo_array  # here, because few data need it
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(edges.shape[1], np.int8), tuple(edges)), shape=(nodes, nodes))
    return np.asarray(connected_components(graph, directed=False)[1], np.int64)


def _standardised(images: NDArray[Any]) -> NDArray[np.float32]:
    """Each image (N, H, W) with zero mean and unit norm, (N, H * W); 0 if its contrast is below two grey levels."""
    z = images.reshape(len(images), images.shape[1] * images.shape[2]).astype(np.float32)
    z -= z.mean(axis=1, keepdims=True)
    norm = np.linalg.norm(z, axis=1, keepdims=True)
    return np.divide(z, norm, out=np.zeros_like(z), where=norm > 2 * np.sqrt(z.shape[1]))
