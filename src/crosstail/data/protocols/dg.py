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
    """Four fifths of the unseen domain for test, a fifth of the others for validation."""
    from crosstail.data.splits.domains import leave_one_domain_out

    return leave_one_domain_out(dataset, spec.unseen, (spec.data_seed, spec.seed))


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
