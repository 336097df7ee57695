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
    """Split a data set by `mdlt` (its own split) or `dg`, then thin out its training part by label profiles."""
    if protocol == "dg":
        dataset = leave_one_domain_out(dataset, unseen, seed)
    elif unseen is not None:
        raise ValueError(f"the protocol mdlt trains on all domains: leave --unseen {unseen} out, or use --protocol dg")
    return with_gaps_noted(apply_labels(dataset, labels, seed), unseen)


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
    parts = np.full(len(dataset), "test", dtype="<U5")
    for d, domain in enumerate(dataset.domains):
        if domain != unseen:
            rows = np.random.default_rng([seed, d]).permutation(np.flatnonzero(dataset.domain == d))
            parts[rows] = "train"
            parts[rows[: len(rows) // 5]] = "val"
    return replace(dataset, split=parts)
