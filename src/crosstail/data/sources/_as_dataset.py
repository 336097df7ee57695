"""The last step of every source: leave out broken images if asked, and split the samples if the source has not."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypedDict, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.data.examination import find_broken
from crosstail.data.images.files import Samples
from crosstail.data.names import Decision
from crosstail.data.sources._groups import names_of_groups, numbered, with_groups
from crosstail.data.sources._names import with_names
from crosstail.data.splits.default import default_split
from crosstail.data.splits.duplicates import with_duplicates
from crosstail.progress import Progress


class SourceOptions(TypedDict, total=False):
    """The options that all sources of user data share."""

    seed: int
    skip_broken: bool
    group_by: str | None  # a regular expression that finds the group in a path
    names: Decision | None  # what names are that are equal but for spaces, case and Unicode form
    progress: Progress | None


def as_dataset(
    name: str,
    x: Samples,
    y: NDArray[np.int64],
    domain: NDArray[np.int64],
    classes: tuple[str, ...],
    domains: tuple[str, ...],
    *,
    split: NDArray[np.str_] | None = None,
    group: "pd.Series[Any] | None" = None,  # names, null where there is none
    group_like: Mapping[str, "pd.Series[Any]"] | None = None,  # columns that are not used but look like groups
    notes: Sequence[str] = (),
    **options: Unpack[SourceOptions],
) -> DomainDataset:
    """Build a data set; without a `split` it gets the one for user data."""
    named = tuple(map(str, classes)), tuple(map(str, domains))  # a source may have them from NumPy
    parts = np.full(len(x), "train", "<U5") if split is None else split
    alike = {column: numbered(values) for column, values in (group_like or {}).items()}
    dataset = DomainDataset(name, x, y, domain, parts, *named, tuple(notes), group_like=alike)
    group = names_of_groups(dataset, group, options.get("group_by"))
    dataset, group = with_names(dataset, group, options.get("names"))
    dataset = with_groups(dataset, group, to_split=split is None)
    if options.get("skip_broken"):
        dataset = without_broken(dataset)
    if split is None:
        together = with_duplicates(dataset.x, dataset.group, options.get("progress"))
        parts = default_split(dataset.y, dataset.domain, together, seed=options.get("seed", 0))
        dataset = replace(dataset, split=parts, group=together)
        if not len(dataset.rows("test")):
            dataset = dataset.with_notes("no pair has two samples or groups to hold one out: all are for training")
    return dataset


def trained_domains(domain: NDArray[Any], split: NDArray[np.str_] | None) -> int:
    """The number of domains with training samples."""
    return len(np.unique(domain if split is None else domain[split == "train"]))


def without_broken(dataset: DomainDataset) -> DomainDataset:
    """Leave out the images that cannot be decoded, and name each of them in a note."""
    if not (broken := dict(find_broken(dataset.x))):
        return dataset
    if len(broken) == len(dataset):
        path, problem = next(iter(broken.items()))
        raise ValueError(f"{dataset.name}: none of its {len(broken)} images can be read; the first, {path}, {problem}")
    kept = np.array([path not in broken for path in dataset.names()])
    return dataset.keep(kept).with_notes(*(f"left out, as it is broken: {p}: {why}" for p, why in broken.items()))
