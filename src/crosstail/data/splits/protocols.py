"""The two protocols as splits: which samples are trained on, selected on and tested on."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosstail.data.dataset import DomainDataset
from crosstail.data.splits.gaps import with_gaps_noted
from crosstail.data.splits.label_profiles import apply_labels


def split_by_protocol(
    dataset: DomainDataset, protocol: str, *, unseen: str | None, labels: Sequence[str] | None, seed: int
) -> DomainDataset:
    """Split a data set by `mdlt` or `dg`, then thin out its training part by label profiles."""
    split = leave_one_domain_out(dataset, unseen, seed) if protocol == "dg" else all_domains(dataset, unseen)
    return with_gaps_noted(apply_labels(split, labels, seed), unseen)


def all_domains(dataset: DomainDataset, unseen: str | None) -> DomainDataset:
    """Multi-domain long-tailed recognition (mdlt): the data set's own split; every pair is tested."""
    if unseen is not None:
        raise ValueError(f"the protocol mdlt trains on all domains: leave --unseen {unseen} out, or use --protocol dg")
    return dataset


def leave_one_domain_out(dataset: DomainDataset, unseen: str | None, seed: int) -> DomainDataset:
    """Domain generalization (dg), as in DomainBed with training-domain validation.

    80 % of each other domain is for training and 20 % for selection; the unseen domain is the test set. The split
    that the data came with is pooled first.
    """
    if unseen not in dataset.domains:
        names = ", ".join(dataset.domains)
        raise ValueError(f"--unseen is {unseen!r}, expected one of the domains of {dataset.name}: {names}")
    if dataset.num_domains < 2:
        raise ValueError(f"{dataset.name} has one domain: leaving it out would leave nothing to train on")
    left_out = dataset.domains.index(unseen)
    parts = np.full(len(dataset), "test", dtype="<U5")
    for d in range(dataset.num_domains):
        if d == left_out:
            continue
        rows = np.random.default_rng([seed, d]).permutation(np.flatnonzero(dataset.domain == d))
        held_out = len(rows) // 5
        parts[rows[:held_out]] = "val"
        parts[rows[held_out:]] = "train"
    return replace(dataset, split=parts)
