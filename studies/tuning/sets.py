"""The sets of photos: five splits of each by the product, and small ones in which class and source are confounded."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from studies.default_method import LESIONS

from crosstail.data import DomainDataset, load_source, protocols
from crosstail.training import RunSpec

SPLITS = 5


@dataclass(frozen=True)
class Photos:
    """A set, by a name that is short enough for a table."""

    name: str
    spec: RunSpec
    thinned: int = 0  # samples for training and validation; 0: all of them
    flips: bool = True  # whether a mirrored picture is one of the same class
    most: int = 0  # validation and test samples of a pair; 0: all of them

    @property
    def activations(self) -> str:
        """Name of the file of activations, which sets of the same photos share."""
        return "-".join([*Path(self.spec.dataset).parts[-2:], str(self.spec.resolution)]) + ".npy"


def sets(data: Path) -> list[Photos]:
    """All sets; the first two are those that rules and recipes were devised on."""
    lesions: dict[str, Any] = {"dataset": str(data / "ham10000/manifest.csv"), "columns": LESIONS}
    tails, opposite = ("forward:100", "backward:100") * 2, ("forward:20", "backward:20") * 2
    office, digits = str(data / "office-caltech10"), str(data / "digits-mlt.npz")
    return [
        Photos("ham10000 by lesion", RunSpec(**lesions)),
        Photos("Office-Caltech10", RunSpec(dataset=office, labels=opposite)),
        Photos("ham10000, opposite tails", RunSpec(**lesions, labels=tails)),
        Photos("Office-Caltech10, 64 px", RunSpec(dataset=office, labels=opposite, resolution=64)),
        *(Photos(f"ham10000, {n:,} photos, confounded", RunSpec(**lesions), thinned=n) for n in (300, 600, 1200)),
        Photos("digits", RunSpec(dataset="digits"), flips=False),
        Photos("digits-mlt", RunSpec(dataset=digits, labels=tails[:2]), flips=False, most=50),
    ]


def split(photos: Photos, number: int) -> tuple[DomainDataset, DomainDataset]:
    """All samples of a set, and those of a split, whose `origin` are their rows in the former."""
    spec = replace(photos.spec, data_seed=number)
    source = load_source(spec)
    dataset = protocols.split(source, spec)
    if dataset.origin is None:
        dataset = replace(dataset, origin=np.arange(len(dataset)))
    rng = np.random.default_rng(number)
    if photos.thinned:
        dataset = confounded(dataset, photos.thinned, rng)
    if photos.most:
        rank, pair = np.zeros(len(dataset), int), dataset.domain * dataset.num_classes + dataset.y
        for part in ("val", "test"):
            for p in np.unique(pair):
                rows = rng.permutation(np.flatnonzero((dataset.split == part) & (pair == p)))
                rank[rows] = np.arange(len(rows))
        dataset = dataset.keep((dataset.split == "train") | (rank < photos.most))
    return source, dataset


def confounded(dataset: DomainDataset, number: int, rng: Any) -> DomainDataset:
    """So many samples for training and validation, in which each class comes from about half of its domains."""
    kept = rng.random((dataset.num_domains, dataset.num_classes)) < 0.5
    there = dataset.counts("train") > 0
    for c in np.flatnonzero(~(kept & there).any(0)):
        kept[rng.choice(np.flatnonzero(there[:, c])), c] = True
    test, among = dataset.split == "test", kept[dataset.domain, dataset.y]
    groups = rng.permutation(np.unique(dataset.group[among & ~test]))
    place = np.full(dataset.group.max() + 1, len(groups))
    place[groups] = np.arange(len(groups))
    rows = np.flatnonzero(among & ~test)
    rows = rows[np.argsort(place[dataset.group[rows]], kind="stable")][:number]
    return dataset.keep(np.sort(np.concatenate([rows, np.flatnonzero(test)])))
