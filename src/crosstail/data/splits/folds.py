"""Cross-validation: every sample is in the test set of one fold."""

from dataclasses import replace

import numpy as np

from crosstail.data.dataset import DomainDataset
from crosstail.data.splits.duplicates import with_duplicates
from crosstail.data.splits.groups import deal, fold_of


def leave_one_fold_out(dataset: DomainDataset, folds: int, fold: int | None, seed: int) -> DomainDataset:
    """Test on one of the folds, 1 to K; a tenth of every pair in the rest is for validation (at least one of four).

    Groups and duplicates stay whole. Which fold a sample is in depends on the seed alone.
    """
    if fold is None:
        raise ValueError(f"--folds {folds} stands for {folds} runs: name the one to load with --fold, from 1")
    dataset = replace(dataset, group=with_duplicates(dataset.x, dataset.group))
    _, pair = dataset.cells()
    own = fold_of(pair, dataset.group, folds, seed)
    rest = np.flatnonzero(own != fold - 1)
    n = np.bincount(pair[rest], minlength=dataset.num_domains * dataset.num_classes)
    wanted = np.where(n >= 4, np.maximum(1, np.rint(n / 10)), 0).astype(np.int64)
    group = None if dataset.group is None else dataset.group[rest]
    split = np.full(len(dataset), "test", "<U5")
    split[rest] = np.array(["val", "train"])[deal(pair[rest], group, wanted[None], least=(n + 1) // 2, seed=seed)]
    cells = np.unique(pair * folds + own) // folds  # a pair, once for every fold that tests it
    tested = np.bincount(cells, minlength=len(n))
    small = int(((tested > 0) & (tested < folds)).sum())
    noun = "samples" if dataset.group is None else "groups"
    note = f"{small:,} of {(tested > 0).sum():,} pairs have too few {noun} to be tested in each of {folds} folds"
    return replace(dataset, split=split).with_notes(*[note] * (small > 0))
