"""How the pairs moved while runs were trained, from the trace that `fit --trace` keeps in their records."""

from collections.abc import Sequence

import altair as alt
import numpy as np
import pandas as pd

from crosstail.report.charts import PALETTE
from crosstail.report.compare.charts import Figure
from crosstail.report.compare.table_files import number
from crosstail.report.compare.tables import Entry
from crosstail.report.graph_chart import graph_chart
from crosstail.report.run.charts import transfer_chart
from crosstail.report.run.tables import STATISTICS, Record, transfer_curve
from crosstail.report.tables import Result, label_table
from crosstail.training.folder import RunFolder
from crosstail.transfer.layout import aligned

MEANING = "α: same class, other domain (small is good); β: other class, same domain; γ: both other (large is good)."


def kept(result: Result, traced: Sequence[Record]) -> int:
    """Which evaluation is that of the model which was kept: the one with its α, β, γ."""

    def differs(record: Record) -> float:
        return sum(
            abs((record["trace"][name] or 0) - (value or 0)) for name, value in result["transferability"].items()
        )

    return min(range(len(traced)), key=lambda i: differs(traced[i]))


def moving_nodes(result: Result, records: Sequence[Record]) -> pd.DataFrame:
    """One row per pair with training samples: domain, class, count, and its place x0, y0, x1, y1, ... in each trace.

    The picture of the model that was kept is that of `crosstail graph`; going from there to both ends, each is turned
    to lie as near as can be to the one before.
    """
    nodes = label_table(result["counts"], result["domains"], result["classes"])
    nodes = nodes[nodes["count"] > 0].reset_index(drop=True)
    traced = [record for record in records if "trace" in record]
    pictures, middle = [np.array(record["trace"]["points"]) for record in traced], kept(result, traced)
    for i in reversed(range(middle)):
        pictures[i] = aligned(pictures[i], pictures[i + 1])
    for i in range(middle + 1, len(pictures)):
        pictures[i] = aligned(pictures[i], pictures[i - 1])
    places = {f"{axis}{i}": picture[:, k] for i, picture in enumerate(pictures) for k, axis in enumerate("xy")}
    return pd.concat([nodes, pd.DataFrame(places).round(4)], axis=1)


def trace_figures(result: Result, records: Sequence[Record]) -> list[Figure]:
    """α, β, γ over the steps, and the pairs in the plane with a slider; none where no trace was kept."""
    if not any("trace" in record for record in records):
        return []
    return [_curve(result, records), moving_figure(result, records)]


def _curve(result: Result, records: Sequence[Record]) -> Figure:
    table, last = transfer_curve(result, records), kept(result, [record for record in records if "trace" in record])
    title = "Distances between pairs during training"
    wide = table.pivot(index="at", columns="statistic", values="distance")
    if {"α", "γ"} <= set(wide):
        begin, end = (wide["α"] / wide["γ"]).iloc[[0, last]]
        verb = "drew together" if end < begin else "moved apart"
        title = f"The same class of two domains {verb} in training: α / γ went from {begin:.2f} to {end:.2f}"
    return Figure("trace", title, transfer_chart(table), "Lines: α, β and γ over the training steps", MEANING)


def moving_figure(result: Result, records: Sequence[Record]) -> Figure:
    """The pairs in the plane at each evaluation that has a trace."""
    traced = [record for record in records if "trace" in record]
    titles, start = [f"step {record['step']:,}: {_words(record)}" for record in traced], kept(result, traced)
    titles[start] += ", kept"
    chart = graph_chart(moving_nodes(result, records), frames=titles, start=start)
    first, last = (record["trace"]["beta"] for record in (traced[0], traced[start]))
    title = "The pairs during training"
    if None not in (first, last):
        title = f"Different classes of a domain went from {first:.2f} to {last:.2f} apart: the slider shows how"
    note = (
        "Each mark is a pair; near marks transfer well. The slider goes through the evaluations and begins with the "
        "model that was kept. Click a mark to see the lines of its class, type to find pairs, turn the wheel to zoom."
    )
    return Figure("trace-graph", title, chart, "Scatter plot: the pairs in two dimensions, step by step", note)


def _words(record: Record) -> str:
    return ", ".join(f"{symbol} {number(record['trace'][name], 2)}" for name, symbol in STATISTICS.items())


def method_curve(found: Sequence[Entry], methods: Sequence[str]) -> pd.DataFrame:
    """One row per method, step and statistic: the mean distance over its runs that kept a trace."""
    rows = []
    for entry in found:
        if entry.method in methods:
            for folder, result in zip(entry.runs["folder"], entry.results, strict=True):
                records = [record for record in RunFolder(folder).records() if "trace" in record]
                if records:
                    curve = transfer_curve(result, records)[["at", "statistic", "distance"]]
                    rows += [(entry.method, *row) for row in curve.itertuples(index=False)]
    table = pd.DataFrame(rows, columns=["method", "at", "statistic", "distance"])
    return table.groupby(["method", "at", "statistic"], sort=False)["distance"].mean().reset_index()


def method_figure(name: str, data: str, table: pd.DataFrame, methods: Sequence[str]) -> Figure:
    """α, β, γ over the steps, a panel each, and a line per method."""
    known = [method for method in methods if method in set(table["method"])]
    colour = alt.Color(
        "method:N",
        title=None,
        sort=known,
        scale=alt.Scale(domain=known, range=PALETTE),
        legend=alt.Legend(orient="top", labelLimit=0, columns=3),
    )
    chart = (
        alt.Chart(table, width=240, height=200)
        .mark_line(point=True)
        .encode(
            x=alt.X("at:Q", title="step"),
            y=alt.Y("distance:Q", title="mean distance in feature space"),
            color=colour,
            tooltip=["method:N", "at:Q", "statistic:N", alt.Tooltip("distance:Q", format=".2f")],
        )
        .facet(facet=alt.Facet("statistic:N", title=None, sort=list(STATISTICS.values())), columns=3)
    )
    last = table.sort_values("at").groupby(["method", "statistic"])["distance"].last().unstack()
    title = f"{data}: distances between pairs during training"
    if {"α", "γ"} <= set(last):
        ratio = last["α"] / last["γ"]
        title = f"{data}: in training, {ratio.idxmin()} draws a class closest together, to α / γ {ratio.min():.2f}"
    return Figure(name, title, chart, "Lines: α, β and γ of each method over the training steps", MEANING)
