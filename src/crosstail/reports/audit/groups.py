"""Samples that belong together: duplicates, and the groups of a source, such as the pictures of one patient.

Duplicates across classes have a wrong label; across splits, the test set leaks into training.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.data.splits.groups import in_several, leaked
from crosstail.reports.document.model import Picture

EXAMPLES = 20  # groups in several splits that are listed with their samples


@dataclass(frozen=True)
class AuditedSample:
    """One input and its place in the data set: domain, class and split."""

    row: int
    name: str  # path of the file, or "row 7"
    place: dict[str, str]


@dataclass(frozen=True)
class SampleGroup:
    """Samples that belong together."""

    samples: tuple[AuditedSample, ...]

    @property
    def across(self) -> tuple[str, ...]:
        """How the samples differ: any of "class", "split" and "domain"."""
        return tuple(what for what in ("class", "split", "domain") if len({s.place[what] for s in self.samples}) > 1)

    def to_json(self) -> dict[str, Any]:
        samples = [{"row": sample.row, "name": sample.name, **sample.place} for sample in self.samples]
        return {"across": list(self.across), "samples": samples}


@dataclass(frozen=True)
class Duplicate(SampleGroup):
    """Samples with identical content (`exact`), or images that look alike."""

    exact: bool

    def to_json(self) -> dict[str, Any]:
        return {"exact": self.exact, **super().to_json()}


def describe(groups: Iterable[Sequence[int]], dataset: DomainDataset, *, exact: bool) -> list[Duplicate]:
    """Look up the rows of each group; groups across classes come first, then those across splits."""
    found = [Duplicate(look_up(group, dataset), exact) for group in groups]
    return sorted(found, key=lambda duplicate: ["class" not in duplicate.across, "split" not in duplicate.across])


def look_up(rows: Iterable[int], dataset: DomainDataset) -> tuple[AuditedSample, ...]:
    """One sample of each (domain, class, split) before the second of any, so that the first few show the problem."""
    seen: dict[Hashable, Iterator[int]] = defaultdict(count)
    samples = []
    for row in rows:
        domain, name = dataset.domains[dataset.domain[row]], dataset.classes[dataset.y[row]]
        place = {"domain": domain, "class": name, "split": str(dataset.split[row])}
        samples.append(AuditedSample(row, dataset.names(row)[0], place))
    return tuple(sorted(samples, key=lambda sample: next(seen[tuple(sample.place.values())])))


def pictures(dataset: DomainDataset, group: SampleGroup) -> list[Picture]:
    """The first images of a group; none if one cannot be decoded."""
    samples = group.samples[:4]
    try:
        images: NDArray[Any] = np.asarray(dataset.x[np.array([sample.row for sample in samples])])
    except (OSError, ValueError):
        return []
    return [Picture(image, "", sample.name) for image, sample in zip(images, samples, strict=True)]


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
