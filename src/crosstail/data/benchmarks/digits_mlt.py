"""Digits-MLT, the paper's digits with configurable long tails: `digits_mlt`."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.benchmarks._check_result import CheckResult
from crosstail.data.benchmarks._image_folders import existing_root
from crosstail.data.benchmarks._mnist_m_svhn import DigitPool, mnist_m, svhn
from crosstail.data.benchmarks._sheet import read_sheet
from crosstail.data.dataset import DomainDataset
from crosstail.data.sources._arrays import load_arrays

SHEET = read_sheet(__file__)

TRAIN, VALIDATION, TEST = 1000, 800, 800  # images per pair


def load(root: Path | str | None = None, seed: int = 0) -> DomainDataset:
    """The balanced set, drawn from the files below `root` or read from an .npz file."""
    folder = existing_root(SHEET, root)
    places = folder, folder / "digits-mlt.npz", folder / "digits_mlt.npz"
    if arrays := next((path for path in places if path.is_file()), None):
        return replace(load_arrays(arrays, seed=seed), name=SHEET.name)
    # Differs from the paper: its text takes validation and test from the original test sets, where MNIST-M has fewer
    # than 1,600 images per class, so that the two would overlap. The reference code validates on training images, too.
    parts = [
        _draw(pool, d, c, split, seed)
        for d, (train, test) in enumerate((mnist_m(folder), svhn(folder)))
        for split, pool in (("train", train), ("val", train), ("test", test))
        for c in range(10)
    ]
    x, domain, y, split = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    return DomainDataset(SHEET.name, x, y, domain, split, SHEET.classes, SHEET.domains)


def _draw(pool: DigitPool, d: int, c: int, split: str, seed: int) -> tuple[NDArray[Any], ...]:
    """Images, domain, class and split of one pair; training and validation are disjoint parts of one shuffle."""
    rows = np.flatnonzero(pool.labels == c)
    shuffled = np.random.default_rng([seed, d, c]).permutation(rows)
    # A class with too few images for both is divided in proportion; MNIST-M and SVHN have none.
    train = min(TRAIN, len(rows) * TRAIN // (TRAIN + VALIDATION))
    first, last = {"train": (0, train), "val": (train, train + VALIDATION), "test": (0, TEST)}[split]
    x = pool.images(np.sort(shuffled[first:last]))
    return x, np.full(len(x), d), np.full(len(x), c), np.full(len(x), split, "<U5")


def check(root: Path) -> CheckResult:
    """Load everything and note pairs with fewer images than in the paper."""
    result = CheckResult(SHEET.name, str(root))
    try:
        dataset = load(root)
    except (ValueError, FileNotFoundError) as error:
        result.problem("missing", str(error))
        return result
    result.images = len(dataset)
    for split, expected in (("train", TRAIN), ("val", VALIDATION), ("test", TEST)):
        counts = dataset.counts(split)
        if counts.min() < expected:
            d, c = np.unravel_index(counts.argmin(), counts.shape)
            pair = f"{dataset.domains[d]} / {dataset.classes[c]}"
            result.note("count", f"{pair} has {counts.min()} images for {split}, the paper has {expected} of each pair")
    return result
