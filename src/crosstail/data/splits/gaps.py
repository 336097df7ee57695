"""What a split cannot teach: classes and domains without training samples."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from crosstail.data.dataset import DomainDataset


def with_gaps_noted(dataset: DomainDataset, unseen: str | None = None) -> DomainDataset:
    """The data set with notes about what its split lacks, in place of those about an earlier split.

    A domain that is left `unseen` on purpose is no gap. A data set with a single class is refused.
    """
    if dataset.num_classes < 2:
        raise ValueError(f"{dataset.name}: has one class ({dataset.classes[0]}), expected two or more to tell apart")
    gaps = tuple(_gaps(dataset, unseen))
    return replace(dataset, notes=(*dataset.source_notes, *gaps), gaps=gaps)


def _gaps(dataset: DomainDataset, unseen: str | None) -> list[str]:
    gaps = []
    if dataset.num_domains == 1:
        gaps.append(
            f"there is one domain ({dataset.domains[0]}): nothing is learned across domains, and BoDA's term is zero"
        )
    train = dataset.counts("train")
    if not train.sum():
        return [*gaps, "there are no training samples: it can be evaluated on, not trained on"]
    untrained = [dataset.classes[c] for c in np.flatnonzero(train.sum(axis=0) == 0)]
    if untrained:
        gaps.append(f"no training samples in any domain, so it cannot be learned: {_listed(untrained)}")
    empty = [dataset.domains[d] for d in np.flatnonzero(train.sum(axis=1) == 0) if dataset.domains[d] != unseen]
    if empty:
        gaps.append(f"no training samples in the domain {_listed(empty)}")
    lone = [dataset.domains[d] for d in np.flatnonzero((train > 0).sum(axis=1) == 1)]
    if lone:
        gaps.append(f"training samples of one class only in the domain {_listed(lone)}")
    return gaps


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:8]) + (f" and {len(names) - 8} more" if len(names) > 8 else "")
