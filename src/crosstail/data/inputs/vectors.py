"""Vectors: embeddings (N, F) in floating point, or of several views of each sample (N, V, F), the plain one first."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail.data.inputs._examined import Examined
from crosstail.data.inputs._hashes import hashes_of_rows
from crosstail.data.inputs._kind import InputKind

_ROWS = 4096  # checked at a time, so that a memory map is never read as a whole


def _plain(x: NDArray[Any]) -> NDArray[Any]:
    return x[:, 0] if x.ndim == 3 else x


def _checked(path: Path, x: NDArray[Any]) -> NDArray[Any]:
    """Finite, and in float32 unless memory-mapped; anything else is refused, naming the row."""
    wrong = np.flatnonzero(np.concatenate([_odd(x[i : i + _ROWS]) for i in range(0, len(x), _ROWS)]))
    if len(wrong):
        raise ValueError(f"{path}: row {wrong[0]} of x has a value that is NaN or infinite ({len(wrong)} such rows)")
    mapped = isinstance(x, np.memmap) and x.dtype.isnative and x.dtype.itemsize <= 8  # which torch takes as it is
    return x if mapped else x.astype(np.float32, copy=False)


def _odd(x: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the rows that are not finite as float32."""
    with np.errstate(over="ignore"):  # values out of range become infinite
        finite = np.isfinite(x.astype(np.float32, copy=False))
    return np.logical_not(finite.reshape(len(x), -1).all(axis=1))


KIND = InputKind(
    holds=lambda x: x.dtype.kind == "f" and x.ndim in (2, 3),
    expects="float embeddings (N, F)",
    noun="embedding",
    light=True,
    check=_checked,
    shape=lambda x: x.shape[-1:],
    tensor=lambda x: torch.tensor(_plain(x), dtype=torch.float32),
    described=lambda shape: f"vectors of {shape[0]:,} numbers",
    prepared=lambda shape: "Vectors as in the training data; nothing is scaled.",
    views=lambda x: x.shape[1] if x.ndim == 3 else 0,
    examined=lambda x, *_: Examined(hashes_of_rows(_plain(x))),
)
