"""Groups on both sides of a line: of a split, where they leak, or between domains or classes."""

from typing import Any

import numpy as np
from numpy.typing import NDArray


def leaked(group: NDArray[np.int64], split: NDArray[np.str_]) -> NDArray[np.int64]:
    """Rows of the test samples that share a group with a training sample."""
    return np.flatnonzero((split == "test") & np.isin(group, group[split == "train"]))


def in_several(group: NDArray[np.int64], of: NDArray[Any]) -> NDArray[np.int64]:
    """The groups whose samples have several values of something, such as domains."""
    values, code = np.unique(of, return_inverse=True)
    cells = np.unique(group * len(values) + code)
    return np.flatnonzero(np.bincount(cells // len(values)) > 1)
