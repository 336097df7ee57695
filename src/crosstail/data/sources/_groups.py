"""Where groups come from: a column or array of names, or a pattern in paths; and columns that look like groups."""

import re
from collections.abc import Iterator
from dataclasses import replace
from shlex import quote
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from crosstail.data.dataset import DomainDataset
from crosstail.data.images.files import Samples
from crosstail.data.inputs import kind_of
from crosstail.data.splits.groups import in_several


def names_of_groups(
    dataset: DomainDataset, names: "pd.Series[Any] | None", pattern: str | None
) -> "pd.Series[Any] | None":
    """The groups (N,) that a source names (null: none), or that a pattern finds in its paths."""
    if pattern is None:
        return names
    if names is not None:
        raise ValueError(f"{dataset.name}: already defines groups; remove --group-by {quote(pattern)}")
    return names_in_paths(dataset.name, dataset.x, pattern)


def with_groups(dataset: DomainDataset, names: "pd.Series[Any] | None", *, to_split: bool) -> DomainDataset:
    """The data set with groups of these names."""
    if names is None:
        return dataset
    group = numbered(names)
    if to_split and len(dataset) > 1 and not group.any():
        found = f"all {len(dataset):,} samples are in the group {names.iloc[0]!r}"
        raise ValueError(f"{dataset.name}: {found}, which cannot be split: name other groups, or provide a split")
    return replace(dataset, group=group).with_notes(*_notes(dataset, names, group))


def numbered(names: "pd.Series[Any]") -> NDArray[np.int64]:
    """Groups (N,) in order of appearance; every null is a group of its own."""
    group, known = pd.factorize(names)
    alone = group < 0
    group[alone] = len(known) + np.arange(alone.sum())
    return pd.factorize(group)[0].astype(np.int64)


def names_in_paths(source: str, x: Samples, pattern: str) -> "pd.Series[Any]":
    """The match of a pattern, or of its first group, in each path below the root; null where there is none."""
    option = f"--group-by {quote(pattern)}"
    kind = kind_of(x)
    if kind.names is None or kind.root(x) is None:
        raise ValueError(f"{source}: its samples have no paths, which {option} needs")
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{option}: is not a regular expression ({error})") from None
    capture, paths = min(1, compiled.groups), kind.names(x, slice(None))
    found = [match[capture] or None if (match := compiled.search(path)) else None for path in paths]
    if not any(found):
        raise ValueError(f"{source}: {option} finds a group in none of {len(paths):,} paths; the first is {paths[0]}")
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(found, pa.string())))


def _notes(dataset: DomainDataset, names: "pd.Series[Any]", group: NDArray[np.int64]) -> Iterator[str]:
    alone, number = np.flatnonzero(names.isna()), int(group.max()) + 1
    if len(alone):
        first = dataset.names(alone[:1])[0]
        have = "has" if len(alone) == 1 else "have"
        yield f"{len(alone):,} of {len(group):,} samples {have} no group (first {first}): each is a group of its own"
    if number == len(group):
        yield f"each of the {number:,} groups has one sample, so groups do not affect the split"
    for many, of, known in (("domains", dataset.domain, dataset.domains), ("classes", dataset.y, dataset.classes)):
        spread = in_several(group, of)
        if len(spread):
            members = np.flatnonzero(group == spread[0])
            values = np.unique(of[members])
            where = ", ".join(known[i] for i in values[:4]) + (", …" if len(values) > 4 else "")
            example = f"such as {names.iloc[members[0]]!r} ({where})"
            are = "is" if len(spread) == 1 else "are"
            yield f"{len(spread):,} of {number:,} groups {are} in several {many}, {example}"


# A group with what qualifies it before and an identifier after it, but no attribute or number of groups.
_GROUP_LIKE = re.compile(
    r"(?!(?:is|has|n|no|num|number|count) )(?:[a-z]+ )*(?:patient|lesion|subject|sequence|case)s?"
    r"(?: ?(?:id|ids|uid|no|nr|num|number|name|code|key|index))*"
)


def looks_like_group(column: str) -> bool:
    """Whether the name of a column says that its values are groups."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", column)
    return _GROUP_LIKE.fullmatch(" ".join(words).lower()) is not None


def group_like_columns(chosen: dict[str, str], found: list[str]) -> dict[str, str]:
    """Without a group, the unused columns that look like one."""
    return {} if "group" in chosen else {n: n for n in found if looks_like_group(n) and n not in chosen.values()}
