"""The paper's split: per pair, a fixed number for validation, twice that for test, the rest for training."""

import numpy as np
from numpy.typing import NDArray


def default_validation(y: NDArray[np.int64], domain: NDArray[np.int64]) -> int:
    """A twentieth of the median size of non-empty pairs, rounded, at least 1.

    >>> default_validation(np.zeros(60, np.int64), np.repeat([0, 1], [20, 40]))
    2
    """
    _, sizes = np.unique(np.stack([domain, y]), axis=1, return_counts=True)
    return max(1, round(float(np.median(sizes)) / 20)) if len(sizes) else 1


def paper_split(
    y: NDArray[np.int64],
    domain: NDArray[np.int64],
    *,
    num_domains: int,
    num_classes: int,
    validation: int | None = None,
    seed: int = 0,
) -> NDArray[np.str_]:
    """Assign "train", "val" or "test" to each sample, (N,); `validation` defaults to `default_validation`.

    A pair with fewer than 3 · validation samples has none for training: a third of it, rounded down, is for validation
    and the rest for test, as in the paper's split files.

    >>> split = paper_split(np.zeros(50, int), np.zeros(50, int), num_domains=1, num_classes=1, validation=10)
    >>> [int((split == part).sum()) for part in ("train", "val", "test")]
    [20, 10, 20]
    """
    if validation is None:
        validation = default_validation(y, domain)
    if validation < 1:
        raise ValueError(f"validation is {validation} samples per pair, expected 1 or more")
    split = np.full(len(y), "train", "<U5")
    pair = domain * num_classes + y
    ends = np.cumsum(np.bincount(pair, minlength=num_domains * num_classes))
    for p, rows in enumerate(np.split(np.argsort(pair, kind="stable"), ends[:-1])):
        generator = np.random.default_rng(np.random.SeedSequence([seed, *divmod(p, num_classes)]))
        shuffled = generator.permutation(rows)
        val = min(validation, len(rows) // 3)
        test = 2 * validation if len(rows) >= 3 * validation else len(rows) - val
        split[shuffled[:val]] = "val"
        split[shuffled[val : val + test]] = "test"
    return split
