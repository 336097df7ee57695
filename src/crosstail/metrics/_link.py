"""How scores become probabilities, and these those for the prevalence of the classes at a site."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor


def log_probabilities(scores: "Tensor") -> "Tensor":
    """Log probabilities (N, C) from scores (N, C)."""
    return scores.log_softmax(1)


def probabilities(scores: "Tensor") -> "Tensor":
    """Probabilities (N, C) from scores (N, C)."""
    return scores.softmax(1)


def in_place(scores: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Probabilities (N, C) in place of the scores, and log Σ exp (N,) of these."""
    most = scores.max(1, keepdims=True)
    scores -= most
    np.exp(scores, out=scores)
    total = scores.sum(1, keepdims=True)
    scores /= total
    return scores, (np.log(total) + most)[:, 0]


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
