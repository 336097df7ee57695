"""Where a model fails: every pair as a heat map, and the worst pairs as a table."""

from collections.abc import Iterator
from operator import itemgetter

import pandas as pd

from crosstail.reports.document.model import Block, Chart, Columns, Heading, Text, records_table
from crosstail.reports.run.charts import NUMBERED, pair_chart
from crosstail.reports.run.model_card import resolution_note
from crosstail.reports.run.tables import worst_table
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.verdict import pair_name, tested_pairs
from crosstail.reports.wording import TRACKS, both_ends, counts, shown

DRAWN = 5000  # pairs up to which there is a heat map
CELLS = 46, 150  # pixels between which the cells of a heat map grow


def pair_map(pairs: pd.DataFrame, few: int, counted: str = "training samples") -> Iterator[Block]:
    """The heat map of every pair; pairs with at most `few` of what is `counted` are marked."""
    if not pairs["tested"].any():
        return
    yield Heading("Every (domain, class) pair", 3)
    if len(pairs) > DRAWN:
        yield Text(f"There are {len(pairs):,}, too many for a heat map; result.json has the hits and totals of each.")
        return
    longest = max(pairs["domain"].nunique(), pairs["class"].nunique())
    shown = "The number is the accuracy in %. " if longest <= NUMBERED else ""
    yield Text(
        f"{shown}The colour is what a pair can reach at best, the upper end of its 95 % interval: a cell is orange "
        f"only if enough test samples show that the pair is bad. A triangle marks 1 to {few} {counted}, a "
        "cross none; a pair without test samples has no colour. Hover over a cell for its counts."
        + (" Rows are sorted from worst to best, panel by panel." if longest > NUMBERED else "")
        + (" The domain is unknown to the model; the tooltip has both accuracies." if "known" in pairs else "")
    )
    across = min(pairs["domain"].nunique(), pairs["class"].nunique())
    yield Chart(
        "pairs",
        "",
        pair_chart(pairs, counted),
        "Heat map: test accuracy per domain and class",
        narrowest=130 + CELLS[0] * across,
        widest=max(520, 140 + CELLS[1] * across),
    )


def worst_pairs(of: Tested, counted: str = "training samples") -> Iterator[Block]:
    """The pairs with the lowest accuracy."""
    pairs = of.pairs
    worst, known = worst_table(pairs), "known" in pairs
    if worst.empty:
        return
    columns: Columns = {
        "pair": pair_name,
        TRACKS[0] if known else "accuracy": shown("accuracy"),
        "95 % interval": both_ends,
    }
    columns |= {TRACKS[1]: shown("known")} if known else {}
    columns |= {"correct": counts("hits"), "tested": counts("tested"), counted: counts("count")}
    columns["shots"] = itemgetter("shot")
    yield Heading("The worst pairs", 3)
    yield records_table(worst.to_dict("records"), columns, note=resolution_note(tested_pairs(pairs)))
