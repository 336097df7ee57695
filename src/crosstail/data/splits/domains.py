"""Domain generalisation: one domain is for test, the others are for training and validation."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import UNUSED, DomainDataset
from crosstail.data.splits.groups import deal


def leave_one_domain_out(
    dataset: DomainDataset, unseen: str | None, seeds: Sequence[int], left_out: str | None = None
) -> DomainDataset:
    """As in DomainBed with training-domain validation (Gulrajani and Lopez-Paz, 2021).

    A random fifth of every domain is for validation, and unused in the unseen domain, the rest of which is for test. It
    depends on the seeds and the domain, not on which one is unseen. Groups stay whole, and those that are also in the
    unseen domain are unused elsewhere. A second domain that is left out is for validation in place of those fifths.
    """
    for option, name in (("unseen", unseen), ("left-out", left_out)):
        if name not in (*dataset.domains, *[None] * (option == "left-out")):
            names = ", ".join(dataset.domains)
            raise ValueError(f"--{option} is {name!r}, expected one of the domains of {dataset.name}: {names}")
    if dataset.num_domains < 2:
        raise ValueError(f"{dataset.name} has one domain: leaving it out would leave nothing to train on")
    tested, held_out = dataset.domain == dataset.domains.index(str(unseen)), _fifth_of_domains(dataset, seeds)
    split = np.where(tested, np.where(held_out, UNUSED, "test"), np.where(held_out, "val", "train"))
    out = tested
    if left_out is not None:
        other = dataset.domain == dataset.domains.index(left_out)
        split, out = np.where(held_out, UNUSED, np.where(other, "val", split)), tested | other
    if dataset.group is not None:
        for part in (tested, out):  # what is in there, too, is not trained on
            split[~part & np.isin(dataset.group, dataset.group[part])] = UNUSED
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
