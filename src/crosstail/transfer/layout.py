"""Where to draw each pair: 2-D multidimensional scaling of the transferability matrix."""

import numpy as np
from numpy.typing import NDArray


def planar_layout(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (P, 2) whose distances follow the mean of both directions of a transferability matrix (P, P).

    Classical scaling initialises SMACOF, so the same matrix always gives the same layout. It is rotated to its
    principal axes, with signs fixed, so that no mirror image is possible.

    >>> planar_layout(np.array([[0.0, 2.0], [4.0, 0.0]])).round(6).tolist()
    [[1.5, 0.0], [-1.5, 0.0]]
    """
    distances = (matrix + matrix.T) / 2
    np.fill_diagonal(distances, 0.0)  # a pair is drawn as a point, however large its spread
    if not distances.any():  # one pair, or all in one place
        return np.zeros((len(distances), 2))
    if len(distances) == 2:
        half = distances[0, 1] / 2
        return np.array([[half, 0.0], [-half, 0.0]])
    from sklearn.manifold import MDS  # here, because it takes a second

    scaling = MDS(n_components=2, metric="precomputed", init="classical_mds", n_init=1, normalized_stress=False)
    points = np.asarray(scaling.fit_transform(distances))
    points -= points.mean(0)
    _, _, axes = np.linalg.svd(points, full_matrices=False)
    points = points @ axes.T
    farthest = np.abs(points).argmax(0)
    signs = np.sign(points[farthest, [0, 1]])
    return np.asarray(points * np.where(signs == 0, 1.0, signs))


def aligned(points: NDArray[np.float64], to: NDArray[np.float64]) -> NDArray[np.float64]:
    """Points (P, 2) rotated or mirrored to match another layout as closely as possible (Procrustes)."""
    from scipy.linalg import orthogonal_procrustes

    rotation, _ = orthogonal_procrustes(points, to)
    return np.asarray(points @ rotation)
