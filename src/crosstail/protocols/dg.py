"""Domain generalization: leave one domain out, and test on all of it (DomainBed's training-domain validation)."""

from dataclasses import replace

import numpy as np

from crosstail.data import DomainDataset


def split(dataset: DomainDataset, unseen: str | None, seed: int) -> DomainDataset:
    """80 % of each other domain for training, 20 % for selection; the unseen domain whole for the test.

    Whatever split the data came with is pooled first, as DomainBed does.
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
        rows = np.random.default_rng(np.random.SeedSequence([seed, d])).permutation(np.flatnonzero(dataset.domain == d))
        held_out = len(rows) // 5
        parts[rows[:held_out]] = "val"
        parts[rows[held_out:]] = "train"
    return replace(dataset, split=parts)
