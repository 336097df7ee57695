"""How frequent classes are at a site, and the answers that take it into account."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def training_shares(counts: NDArray[np.integer]) -> NDArray[np.float64]:
    """Shares (D, C) of the classes at every site, with one more sample of each: an unseen class may still occur there.

    A class without any sample has none.
    """
    more = counts + (counts.sum(0) > 0)
    found: NDArray[np.float64] = more / more.sum(1, keepdims=True).clip(1)
    return found


def with_prior(balanced: NDArray[np.floating], prior: NDArray[np.floating]) -> NDArray[Any]:
    """Probabilities (N, C) for classes with these shares, from those for equally frequent classes (Bayes' rule)."""
    joint: NDArray[Any] = balanced * np.asarray(prior, balanced.dtype)
    joint /= joint.sum(1, keepdims=True).clip(np.finfo(joint.dtype).tiny)
    return joint
