"""Domain generalisation: one domain is for test, the others are for training and validation."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import UNUSED, DomainDataset
from crosstail.data.splits.groups import deal


def leave_one_domain_out(dataset: DomainDataset, unseen: str | None, seeds: Sequence[int]) -> DomainDataset:
    """As in DomainBed with training-domain validation (Gulrajani and Lopez-Paz, 2021).

    A random fifth of every domain is for validation, and unused in the unseen domain, the rest of which is for test. It
    depends on the seeds and the domain, not on which one is unseen. Groups stay whole, and those that are also in the
    unseen domain are unused elsewhere.
    """
    if unseen not in dataset.domains:
        names = ", ".join(dataset.domains)
        raise ValueError(f"--unseen is {unseen!r}, expected one of the domains of {dataset.name}: {names}")
    if dataset.num_domains < 2:
        raise ValueError(f"{dataset.name} has one domain: leaving it out would leave nothing to train on")
    tested = dataset.domain == dataset.domains.index(unseen)
    held_out = _fifth_of_domains(dataset, seeds)
    split = np.where(tested, np.where(held_out, UNUSED, "test"), np.where(held_out, "val", "train"))
    if dataset.group is not None:  # what is in the unseen domain, too, is not trained on
        split[~tested & np.isin(dataset.group, dataset.group[tested])] = UNUSED
    return replace(dataset, split=split)


def _fifth_of_domains(dataset: DomainDataset, seeds: Sequence[int]) -> NDArray[np.bool_]:
    sizes = np.bincount(dataset.domain, minlength=dataset.num_domains)
    if dataset.group is not None:
        seed = int(np.random.SeedSequence(list(seeds)).generate_state(1)[0])
        return deal(dataset.domain, dataset.group, sizes[None] // 5, least=0 * sizes, seed=seed) == 0
    chosen = np.zeros(len(dataset), np.bool_)
    for d, size in enumerate(sizes):
        rows = np.random.default_rng([*seeds, d]).permutation(np.flatnonzero(dataset.domain == d))
        chosen[rows[: size // 5]] = True
    return chosen
