"""What averages are over, how they weigh pairs, and how samples are numbered by pair and group."""

from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.pairs import pair_number

View: TypeAlias = Literal["average", "worst_domain", "pair_average", "worst_pair"]


Weighting: TypeAlias = Literal["average", "class_mean", "pair_average"]
"""Samples of a domain weigh the same, classes of a domain, or pairs; domains weigh the same in the first two."""


def pair_weights(totals: NDArray[Any], of: Weighting) -> NDArray[np.float64]:
    """The weight (D, C) of each pair's accuracy in an average; at least one total is positive.

    >>> pair_weights(np.array([[30, 10], [5, 0]]), "average").tolist()
    [[0.375, 0.125], [0.5, 0.0]]
    """
    weights = totals if of == "average" else np.asarray(totals > 0, float)
    if of != "pair_average":
        weights = weights / np.maximum(weights.sum(axis=1, keepdims=True), 1e-9)
    return np.asarray(weights / weights.sum())


def pair_index(y: ArrayLike, domain: ArrayLike, *, num_domains: int, num_classes: int) -> NDArray[np.int64]:
    """The pair of every sample, checked.

    >>> pair_index([0, 1, 2], [0, 0, 1], num_domains=2, num_classes=3)
    array([0, 1, 5])
    """
    y, domain = np.asarray(y), np.asarray(domain)
    if y.ndim != 1 or y.shape != domain.shape:
        raise ValueError(f"y has shape {y.shape} and domain {domain.shape}, expected (N,) for both")
    for name, values, size in (("y", y, num_classes), ("domain", domain, num_domains)):
        if len(values) and values.dtype.kind not in "iu":
            raise ValueError(f"{name} has dtype {values.dtype}, expected integers from 0 to {size - 1}")
        # Without this check an out-of-range class would be counted in the next domain.
        wrong = np.flatnonzero((values < 0) | (values >= size))
        if len(wrong):
            raise ValueError(f"{name} of sample {wrong[0]} is {values[wrong[0]]}, expected 0 to {size - 1}")
    # Cast first: labels are often uint8, where the product overflows.
    return pair_number(y.astype(np.int64), domain.astype(np.int64), num_classes)


def cells(pair: NDArray[np.int64], group: ArrayLike | None) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Number the cells, the samples that a group has in a pair: of each sample (N,), and the pair of each cell.

    >>> cells(np.array([3, 3, 3, 1]), [7, 7, 8, 7])
    (array([1, 1, 2, 0]), array([1, 3, 3]))
    """
    group = np.arange(len(pair)) if group is None else np.asarray(group)
    if group.shape != pair.shape or group.dtype.kind not in "iu":
        raise ValueError(f"group is {group.dtype} of shape {group.shape}, expected integers of shape {pair.shape}")
    names, number = np.unique(group, return_inverse=True)
    found, cell = np.unique(pair * len(names) + number, return_inverse=True)
    return cell, found // max(len(names), 1)
