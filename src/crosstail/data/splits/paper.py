"""The paper's split: per pair, a fixed number for validation, twice that for test, the rest for training."""

import numpy as np
from numpy.typing import NDArray

from crosstail.pairs import pair_number


def paper_split(y: NDArray[np.int64], domain: NDArray[np.int64], *, validation: int, seed: int = 0) -> NDArray[np.str_]:
    """Assign "train", "val" or "test" to each sample, (N,).

    A pair with fewer than 3 · validation samples has none for training, as in the paper's split files.
    """
    num_classes = y.max(initial=0) + 1
    pair = pair_number(y, domain, num_classes)
    pairs, sizes = np.unique(pair, return_counts=True)
    if validation < 1:
        raise ValueError(f"validation is {validation} samples per pair, expected 1 or more")
    split = np.full(len(y), "train", "<U5")
    ends = np.cumsum(sizes)
    order = np.argsort(pair, kind="stable")
    for p, size, end in zip(pairs, sizes, ends, strict=True):
        generator = np.random.default_rng([seed, *divmod(p, num_classes)])
        shuffled = generator.permutation(order[end - size : end])
        val = min(validation, size // 3)
        test = 2 * validation if size >= 3 * validation else size - val
        split[shuffled[:val]] = "val"
        split[shuffled[val : val + test]] = "test"
    return split
