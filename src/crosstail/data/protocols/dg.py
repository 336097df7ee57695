"""Leave out each domain in turn and test on it, as DomainBed does."""

from dataclasses import replace
from typing import TYPE_CHECKING

from crosstail.data.protocols import Protocol, S

if TYPE_CHECKING:
    from crosstail.data.dataset import DomainDataset


def parts(spec: S, source: "DomainDataset") -> list[S]:
    """One spec for each unseen domain."""
    return [replace(spec, unseen=domain) for domain in source.domains]


def split(dataset: "DomainDataset", spec: S) -> "DomainDataset":
    """Four fifths of the unseen domain for test, a fifth of the others for validation, or what a setting says."""
    from crosstail.data.splits.domains import leave_one_domain_out
    from crosstail.data.splits.imbalanced_dg import imbalanced, setting_of

    seeds = spec.data_seed, spec.seed
    usual, setting = leave_one_domain_out(dataset, spec.unseen, seeds, spec.left_out), setting_of(spec)
    if setting is not None and spec.left_out is not None:
        raise ValueError(f"--labels {spec.labels} says what is validated on: remove --left-out")
    return usual if setting is None else imbalanced(dataset, str(spec.unseen), setting, seeds)


PROTOCOL = Protocol(
    parts=parts,
    split=split,
    unseen_domains=True,
    seeded=True,
    selects_on="average",
    spread="se",
    last_of_ties=True,
    by_share=True,
)
