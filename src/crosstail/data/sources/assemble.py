"""What the sources of image files have in common: leaving out broken ones, splitting."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import ImageFiles, check_images
from crosstail.data.splits.paper import paper_split

# What others call the three splits.
SPLIT_NAMES = {
    "train": "train",
    "training": "train",
    "val": "val",
    "valid": "val",
    "validation": "val",
    "dev": "val",
    "test": "test",
    "testing": "test",
}


def from_files(
    name: str,
    files: ImageFiles,
    y: NDArray[np.int64],
    domain: NDArray[np.int64],
    classes: tuple[str, ...],
    domains: tuple[str, ...],
    *,
    split: NDArray[np.str_] | None = None,
    notes: Sequence[str] = (),
    seed: int = 0,
    skip_broken: bool = False,
) -> DomainDataset:
    """A data set of image files, without the broken ones if asked for, split as in the paper if it has no split."""
    train = np.full(len(files), "train", "<U5")
    dataset = DomainDataset(name, files, y, domain, train if split is None else split, classes, domains, tuple(notes))
    if skip_broken:
        dataset = without_broken(dataset, files)
    if split is None:
        sizes = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
        dataset = replace(dataset, split=paper_split(dataset.y, dataset.domain, seed=seed, **sizes))
    return dataset


def without_broken(dataset: DomainDataset, files: ImageFiles) -> DomainDataset:
    """Leave out the images that cannot be decoded, and name every one of them."""
    broken = dict(check_images(files))
    if not broken:
        return dataset
    if len(broken) == len(files):
        path, problem = next(iter(broken.items()))
        raise ValueError(f"{dataset.name}: none of its {len(files)} images can be read; the first, {path}, {problem}")
    kept = np.array([path not in broken for path in files.paths()])
    notes = [f"left out, as it is broken: {path}: {problem}" for path, problem in broken.items()]
    return dataset.keep(kept).with_notes(*notes)
