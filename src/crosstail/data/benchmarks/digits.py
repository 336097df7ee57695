"""Synthetic digits in three domains, generated on the fly without a download: `digits`."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.benchmarks import _draw_digits as draw
from crosstail.data.benchmarks._sheet import read_sheet
from crosstail.data.dataset import DomainDataset

SHEET = read_sheet(__file__)

POOL = {"train": 57, "val": 18, "test": 40}  # images per pair


def originals(seed: int = 0) -> dict[tuple[str, str], NDArray[np.int64]]:
    """Rows of scikit-learn's digits used for each (domain, split), (10, count), one line per class."""
    target = _scanned().target
    rng = np.random.default_rng([seed, 0])
    ends = np.cumsum([POOL["test"], POOL["val"], POOL["train"], POOL["train"]])
    shuffled = np.stack([rng.permutation(np.flatnonzero(target == c))[: ends[-1]] for c in range(10)])
    test, val, train, other_train = np.split(shuffled, ends[:-1], axis=1)
    parts = {"handwritten": (train, val, test), "textured": (other_train, val, test)}
    return {(domain, split): rows for domain, found in parts.items() for split, rows in zip(POOL, found, strict=True)}


def _scanned() -> Any:
    from sklearn.datasets import load_digits  # here, because it takes a second, and the data sheet does not need it

    return load_digits()


def load(seed: int = 0) -> DomainDataset:
    """The balanced set: 57 images for training, 18 for validation and 40 for test in every pair."""
    ink = (_scanned().images / 16).astype(np.float32)
    rows = originals(seed)
    y = np.concatenate([np.repeat(np.arange(10), count) for count in POOL.values()])  # of one domain
    split = np.repeat(list(POOL), [10 * count for count in POOL.values()])
    streams = [np.random.default_rng([seed, d]) for d in (1, 2, 3)]
    plain, textured = (ink[np.concatenate([rows[name, s].ravel() for s in POOL])] for name in SHEET.domains[:2])
    drawn = draw.handwritten(plain, streams[0]), draw.textured(textured, streams[1]), draw.signs(y, streams[2])
    domain = np.repeat(np.arange(3), len(y))
    x, y = np.concatenate(drawn), np.tile(y, 3)
    return DomainDataset(SHEET.name, x, y, domain, np.tile(split, 3), SHEET.classes, SHEET.domains)
