"""Columns that look like groups but are not named as such."""

import re
from collections.abc import Iterator
from shlex import quote

import pandas as pd

from crosstail.data.dataset import DomainDataset
from crosstail.data.sources._groups import numbered
from crosstail.data.splits.leaks import leaked

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


def group_like_notes(dataset: DomainDataset, table: pd.DataFrame) -> Iterator[str]:
    """For each column whose values repeat, how far they leak under the present split, and the option to name it."""
    for column in table:
        group = numbered(table[column])
        if 1 < group.max() + 1 < len(group):
            shared, tests = len(leaked(group, dataset.split)), len(dataset.rows("test"))
            leak = f" ({shared:,} of {tests:,} test samples share its value with a training sample)" if shared else ""
            yield f"the column {column} looks like a group{leak}: add --column {quote(f'group={column}')}"
