"""A data set for Crosstail, with mine.toml beside it: crosstail fit ./mine.py. Coloured squares, flat and noisy."""

import numpy as np

from crosstail.data import DomainDataset, read_sheet

SHEET = read_sheet(__file__)
SPLITS = {"train": 30, "val": 5, "test": 10}  # images per pair


def load(seed: int = 0) -> DomainDataset:
    """Images x (N, H, W, 3), or vectors (N, F), with a class, a domain and a split for each."""
    each = sum(SPLITS.values())
    domain, y = (index.ravel().repeat(each) for index in np.indices((2, 3)))
    noise = np.random.default_rng(seed).integers(-60, 60, (len(y), 8, 8, 3))
    x = 80 + 100 * np.eye(3, dtype=int)[y][:, None, None] + noise * domain[:, None, None, None]
    split = np.tile(np.repeat(list(SPLITS), list(SPLITS.values())), 6)
    return DomainDataset(SHEET.name, x.astype(np.uint8), y, domain, split, SHEET.classes, SHEET.domains)
