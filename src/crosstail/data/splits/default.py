"""The split of user data: most of every pair is for training, and groups stay whole."""

import numpy as np
from numpy.typing import NDArray

from crosstail.data.splits.groups import Codes, deal
from crosstail.pairs import pair_number


def default_split(y: Codes, domain: Codes, group: Codes | None = None, *, seed: int = 0) -> NDArray[np.str_]:
    """Assign "train", "val" or "test" to each sample, (N,), so that no group is in two of them.

    Of every pair a fifth is for test (at least one of two samples), a tenth for validation (at least one of four), and
    half or more for training; a pair with one group is for training only.
    """
    pair = pair_number(y, domain, y.max(initial=0) + 1)
    n = np.bincount(pair)
    test = np.where(n >= 2, np.maximum(1, np.rint(n / 5)), 0)
    val = np.where(n >= 4, np.maximum(1, np.rint(n / 10)), 0)
    parts = deal(pair, group, np.stack([test, val]).astype(np.int64), least=(n + 1) // 2, seed=seed)
    return np.array(["test", "val", "train"])[parts]  # the rest, −1, is for training
