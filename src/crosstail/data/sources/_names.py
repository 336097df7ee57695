"""Names that a source spells in several ways: merged, kept, or noted until the user decides."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.data.names import Decision, SameName, listed, same_names


def with_names(
    dataset: DomainDataset, group: "pd.Series[Any] | None", names: Decision | None
) -> "tuple[DomainDataset, pd.Series[Any] | None]":
    """The data set and the names of its groups, with one spelling of each name if `names` is merge."""
    if names == "keep":
        return dataset, group
    classes = same_names("class", _counted(dataset.classes, dataset.y))
    domains = same_names("domain", _counted(dataset.domains, dataset.domain))
    sizes = {} if group is None else {str(name): int(n) for name, n in group.value_counts().items()}
    groups = same_names("group", sizes)
    found = (*classes, *domains, *groups)
    if names is None or not found:
        return replace(dataset, same_names=found), group
    y, named = _merged(dataset.y, dataset.classes, classes)
    domain, sites = _merged(dataset.domain, dataset.domains, domains)
    dataset = replace(dataset, y=y, classes=named, domain=domain, domains=sites)
    if groups and group is not None:
        to = _spelling(groups)
        group = group.astype(object).map(lambda name: to.get(name, name), na_action="ignore")
    return dataset.with_notes(f"spellings of one name, merged: {listed(found, 8)}"), group


def _counted(names: Sequence[str], index: NDArray[np.int64]) -> dict[str, int]:
    return dict(zip(names, np.bincount(index, minlength=len(names)).tolist(), strict=True))


def _spelling(found: Sequence[SameName]) -> dict[str, str]:
    return {name: one.chosen for one in found for name in one.spellings}


def _merged(
    index: NDArray[np.int64], names: tuple[str, ...], found: Sequence[SameName]
) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """As if the samples had always had the chosen names, which keep their order."""
    to = _spelling(found)
    kept = tuple(name for name in names if to.get(name, name) == name)
    number = {name: i for i, name in enumerate(kept)}
    return np.array([number[to.get(name, name)] for name in names], np.int64)[index], kept
