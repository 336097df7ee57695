"""Train on all domains and test on every pair."""

from dataclasses import replace
from typing import TYPE_CHECKING

from crosstail.data.protocols import Protocol, S

if TYPE_CHECKING:
    from crosstail.data.dataset import DomainDataset


def parts(spec: S, source: "DomainDataset") -> list[S]:
    """The spec itself, or one for each fold."""
    return [spec] if spec.folds is None else [replace(spec, fold=fold) for fold in range(1, spec.folds + 1)]


def split(dataset: "DomainDataset", spec: S) -> "DomainDataset":
    """The split of the source, or one fold for test."""
    from crosstail.data.splits.folds import leave_one_fold_out

    if spec.unseen is not None:
        raise ValueError(
            f"the protocol {spec.protocol} trains on all domains: remove --unseen {spec.unseen}, or use --protocol dg"
        )
    return dataset if spec.folds is None else leave_one_fold_out(dataset, spec.folds, spec.fold, spec.data_seed)


PROTOCOL = Protocol(parts=parts, split=split, folds=True)
