"""The two protocols as splits: which samples are trained on, selected on and tested on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosstail.data.dataset import UNUSED, DomainDataset
from crosstail.data.splits.folds import leave_one_fold_out
from crosstail.data.splits.gaps import with_gaps_noted
from crosstail.data.splits.label_profiles import apply_labels


def split_by_protocol(
    dataset: DomainDataset,
    protocol: str,
    *,
    unseen: str | None = None,
    folds: int | None = None,
    fold: int | None = None,
    whole: bool = False,
    labels: Sequence[str] | None,
    data_seed: int,
    seed: int,
) -> DomainDataset:
    """Split a data set by `mdlt` (its own split, or folds) or `dg`, then thin out its training part by label profiles.

    With `whole`, every sample is for training.
    """
    if whole:
        dataset = replace(dataset, split=np.full(len(dataset), "train"))
    elif protocol == "dg":
        dataset = leave_one_domain_out(dataset, unseen, (data_seed, seed))
    elif unseen is not None:
        raise ValueError(f"the protocol mdlt trains on all domains: leave --unseen {unseen} out, or use --protocol dg")
    elif folds is not None:
        dataset = leave_one_fold_out(dataset, folds, fold, data_seed)
    return with_gaps_noted(apply_labels(dataset, labels, data_seed), unseen)


def leave_one_domain_out(dataset: DomainDataset, unseen: str | None, seeds: Sequence[int]) -> DomainDataset:
    """Domain generalization (dg), as in DomainBed with training-domain validation (Gulrajani and Lopez-Paz, 2021).

    A fifth of every domain, rounded down, is drawn at random. It is the validation set in the other domains and unused
    in the unseen one; the rest is for training and for test. Which samples these are depends on the seeds and the
    domain, not on which domain is unseen. The split that the data came with is pooled first.
    """
    if unseen not in dataset.domains:
        names = ", ".join(dataset.domains)
        raise ValueError(f"--unseen is {unseen!r}, expected one of the domains of {dataset.name}: {names}")
    if dataset.num_domains < 2:
        raise ValueError(f"{dataset.name} has one domain: leaving it out would leave nothing to train on")
    parts = np.empty(len(dataset), dtype="<U5")
    for d, domain in enumerate(dataset.domains):
        rows = np.random.default_rng([*seeds, d]).permutation(np.flatnonzero(dataset.domain == d))
        held_out, rest = np.split(rows, [len(rows) // 5])
        parts[held_out], parts[rest] = (UNUSED, "test") if domain == unseen else ("val", "train")
    return replace(dataset, split=parts)
