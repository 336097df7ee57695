"""What a split lacks: training samples of classes and domains, or test samples that are apart from training."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from crosstail.data.dataset import DomainDataset
from crosstail.data.splits.leaks import leaked


def with_gaps_noted(dataset: DomainDataset, unseen: str | None = None) -> DomainDataset:
    """The data set with notes about what its split lacks, in place of those about an earlier split.

    A domain that is left `unseen` on purpose is no gap. A data set with a single class is refused.
    """
    if dataset.num_classes < 2:
        raise ValueError(f"{dataset.name}: has one class ({dataset.classes[0]}), expected two or more to tell apart")
    gaps = tuple(_gaps(dataset, unseen))
    return replace(dataset, notes=(*dataset.source_notes, *gaps), gaps=gaps)


def _gaps(dataset: DomainDataset, unseen: str | None) -> Iterator[str]:
    if dataset.num_domains == 1:
        only = dataset.domains[0]
        yield f"there is one domain ({only}): nothing is learned across domains, and BoDA's term is zero"
    train = dataset.counts("train")
    if not train.sum():
        yield "there are no training samples: it can be evaluated on, not trained on"
        return
    for lacking, names, message in (
        (train.sum(axis=0) == 0, dataset.classes, "no training samples in any domain, so it cannot be learned:"),
        (train.sum(axis=1) == 0, dataset.domains, "no training samples in the domain"),
        ((train > 0).sum(axis=1) == 1, dataset.domains, "training samples of one class only in the domain"),
    ):
        if found := [names[i] for i in np.flatnonzero(lacking) if names[i] != unseen]:
            yield f"{message} {', '.join(found[:8])}" + (f" and {len(found) - 8} more" if len(found) > 8 else "")
    if dataset.group is not None and (shared := len(leaked(dataset.group, dataset.split))):
        tests = len(dataset.rows("test"))
        yield f"{shared:,} of {tests:,} test samples share a group with a training sample: accuracy may be inflated"
