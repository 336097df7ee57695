"""The link: how scores become probabilities. Whatever turns one into the other calls one of these."""

from typing import TYPE_CHECKING

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
