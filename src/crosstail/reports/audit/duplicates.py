"""Duplicate inputs: across classes a label is wrong, across splits the test set leaks into training."""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.reports.document.model import Picture


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
