"""Ranks of the methods over all data sets, with the critical difference; with few data sets, ranks separate nothing."""

from collections.abc import Iterator

import pandas as pd

from crosstail.metrics import LEVEL
from crosstail.metrics._ranks import compare_ranks
from crosstail.reports.compare.tables import everywhere
from crosstail.reports.document.model import Block, Table, Text
from crosstail.reports.wording import number, probability, several

FEWEST = 10  # data sets


def ranks(summary: pd.DataFrame) -> Iterator[Block]:
    """Mean ranks on the test sets of the methods that were run on all of ten or more data sets."""
    values = everywhere(summary)
    order = list(map(str, values))
    if len(order) < FEWEST or len(values) < 3:
        return
    found = compare_ranks(values.T.to_numpy())
    table = pd.DataFrame(found.ranks.T, values.index, order).assign(mean=found.mean)
    table = table.sort_values("mean", kind="stable").reset_index()
    beyond = int((table["mean"] > table["mean"].iloc[0] + found.critical).sum())
    yield Text(
        f"The mean ranks of two of {len(table)} methods on {several(len(order), 'data set')} differ beyond chance if "
        f"they are at least {number(found.critical, 1)} apart (Nemenyi's critical difference at {100 * LEVEL:g} %): so "
        f"are {several(beyond, 'method')} from the first, {table['method'].iloc[0]}. That all methods are equal has a "
        f"p-value of {probability(found.p_value)} (Friedman's test)."
    )
    cells = [[row["method"], number(row["mean"], 1), *(f"{row[d]:g}" for d in order)] for _, row in table.iterrows()]
    header = ["method", "mean rank", *order]
    yield Table(name="ranks", title="Rank on each data set", header=header, rows=cells, numbers=table)
