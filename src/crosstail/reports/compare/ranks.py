"""Ranks of the methods over all data sets, with the critical difference."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from crosstail.metrics import LEVEL, Metric, mean_interval
from crosstail.metrics._ranks import compare_ranks
from crosstail.reports.charts import INK, PALETTE, names, tip
from crosstail.reports.compare.tables import RANKED, metric_of, of_metric
from crosstail.reports.document.model import Block, Chart, Table, Text
from crosstail.reports.vega_lite import Drawing, draw, either, field, layer
from crosstail.reports.wording import interval, number, several
from crosstail.sweeps.recommendation import BASELINE

FEWEST = 10  # data sets, for ranks to separate methods


def ranks(summary: pd.DataFrame) -> Iterator[Block]:
    """Mean ranks on the test sets of the methods that were run on all of them, as text, chart and table."""
    rows = of_metric(summary, RANKED)
    order = list(dict.fromkeys(rows["data"]))
    values = metric_of(summary).sign * rows.pivot(index="method", columns="data", values="mean")[order].dropna()
    if len(order) < FEWEST:
        yield from _effects(values, metric_of(summary))
        return
    if len(values) < 3:
        return
    found = compare_ranks(values.T.to_numpy())
    table = pd.DataFrame(found.ranks.T, values.index, order).assign(mean=found.mean)
    table = table.sort_values("mean", kind="stable").reset_index()
    best, last = table["mean"].iloc[0], float(table["mean"].iloc[0] + found.critical)
    beyond = int((table["mean"] > last).sum())
    yield Text(
        f"On {several(len(order), 'data set')}, the mean ranks of two of these {len(table)} methods differ beyond "
        f"chance if they are at least {number(found.critical, 1)} apart (Nemenyi's critical difference at "
        f"{100 * LEVEL:g} %). So {several(beyond, 'method')} of {len(table) - 1} {'is' if beyond == 1 else 'are'} "
        f"behind the first, {table['method'].iloc[0]}. That all methods are equal has a p-value of "
        f"{_p(found.p_value)} (Friedman's test)."
    )
    yield Chart(
        "ranks",
        "Mean rank over all data sets",
        _chart(table, order, best, last),
        "Dots: mean rank of each method; a band from the first that is as wide as the critical difference",
        "Small ticks are the ranks on the single data sets; methods whose dot is in the band do not differ from the "
        "first beyond chance.",
    )
    yield Table(
        name="ranks",
        title="Rank on each data set",
        header=["method", "mean rank", *order],
        rows=[
            [row["method"], number(row["mean"], 1), *(f"{row[data]:g}" for data in order)]
            for _, row in table.iterrows()
        ],
        numbers=table,
    )


def _effects(values: pd.DataFrame, metric: Metric) -> Iterator[Block]:
    """Each method against one, over data sets, with a data set as the unit; too few to rank them."""
    if values.shape[1] < 2 or len(values) < 2:
        return
    base = BASELINE if BASELINE in values.index else values.mean(axis=1).idxmax()
    gains = (values - values.loc[str(base)]).assign(mean=lambda found: found.mean(axis=1))
    gains = gains.sort_values("mean", ascending=False, kind="stable")
    ends = [mean_interval(row) if row.any() else (np.nan,) * 2 for row in gains.drop(columns="mean").to_numpy()]
    table = gains.assign(low=[low for low, _ in ends], high=[high for _, high in ends]).reset_index()
    order, digits = list(values.columns), metric.digits
    yield Table(
        name="effects",
        title=f"Gain over {base} on each of {several(len(order), 'data set')}",
        header=["method", "mean", "95 % interval", *order],
        rows=[
            [row["method"], number(row["mean"], digits, "+"), interval(row["low"], row["high"], "+z", digits)]
            + [number(row[data], digits, "+") for data in order]
            for row in table.to_dict("records")
        ],
        numbers=table,
        note=f"The interval is Student's of the mean over data sets like these. With fewer than {FEWEST} of them, "
        "ranks separate nothing.",
    )


def _p(value: float) -> str:
    return "less than 0.001" if value < 0.001 else f"{value:.3f}"


def _chart(table: pd.DataFrame, order: list[str], best: float, last: float) -> Drawing:
    shown = table[["method", "mean"]].assign(within=table["mean"] <= last)
    single = table.melt("method", order, "data", "rank")
    y = names("method", order=list(table["method"]), labelLimit=200, labelOverlap=False)
    axis = field("from:Q", title="rank, 1 is the best", scale={"domain": [1, len(table)], "nice": False})
    band = draw(pd.DataFrame({"from": [best], "to": [min(last, float(len(table)))]}))
    return layer(
        band.mark("rect", color=PALETTE[0], opacity=0.12).encode(x=axis, x2="to"),
        draw(single)
        .mark("tick", color=INK, opacity=0.35, thickness=1.5, size=9)
        .encode(x="rank:Q", y=y, tooltip=["method:N", "data:N", tip("rank", "g")]),
        draw(shown)
        .mark("point", filled=True, size=60, opacity=1)
        .encode(
            x="mean:Q",
            y=y,
            color=either("datum.within", PALETTE[0], INK),
            tooltip=["method:N", tip("mean", ".1f", "mean rank")],
        ),
        width="container",
        height={"step": 18},
    )
