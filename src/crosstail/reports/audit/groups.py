"""Groups, such as patients: how large they are, and which of them leak from one split into another."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from crosstail.data.dataset import DomainDataset
from crosstail.data.splits.groups import in_several, leaked
from crosstail.reports.audit.duplicates import SampleGroup, look_up

EXAMPLES = 20  # groups in several splits that are listed with their samples


@dataclass(frozen=True)
class GroupFacts:
    """Facts about groups; `leaking` are the first in several splits, those in training and test before others."""

    groups: int
    with_several: int  # groups of two or more samples
    median: int  # samples per group
    largest: int
    several_splits: int
    several_domains: int
    several_classes: int
    tests: int
    leaked_tests: int  # test samples that share a group with a training sample
    leaking: tuple[SampleGroup, ...]

    def to_json(self) -> dict[str, Any]:
        return {**vars(self), "leaking": [group.to_json() for group in self.leaking]}


def group_facts(dataset: DomainDataset) -> GroupFacts | None:
    """Facts about the groups of a data set, or None if it has none."""
    group = dataset.group
    if group is None:
        return None
    sizes = np.bincount(group)
    sizes = sizes[sizes > 0]
    split, domain, name = (in_several(group, of) for of in (dataset.split, dataset.domain, dataset.y))
    tests = leaked(group, dataset.split)
    first = list(dict.fromkeys([*np.unique(group[tests]).tolist(), *split.tolist()]))[:EXAMPLES]
    return GroupFacts(
        groups=len(sizes),
        with_several=int((sizes > 1).sum()),
        median=int(np.sort(sizes)[(len(sizes) - 1) // 2]),
        largest=int(sizes.max()),
        several_splits=len(split),
        several_domains=len(domain),
        several_classes=len(name),
        tests=len(dataset.rows("test")),
        leaked_tests=len(tests),
        leaking=tuple(SampleGroup(look_up(np.flatnonzero(group == g).tolist(), dataset)) for g in first),
    )
