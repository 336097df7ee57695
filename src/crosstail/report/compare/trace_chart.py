"""How the pairs moved during the training of each method."""

from collections.abc import Sequence

import altair as alt
import pandas as pd

from crosstail.report.charts import PALETTE
from crosstail.report.compare.tables import Entry
from crosstail.report.document.model import Chart
from crosstail.report.run.tables import STATISTICS, transfer_curve
from crosstail.report.run.trace import MEANING, traced
from crosstail.training.folder import RunFolder


def method_curve(found: Sequence[Entry], methods: Sequence[str]) -> pd.DataFrame:
    """One row per method, step and statistic: the mean distance over its traced runs."""
    rows = []
    for entry in found:
        if entry.method in methods:
            for folder, result in zip(entry.runs["folder"], entry.results, strict=True):
                curve = transfer_curve(result, traced(RunFolder(folder).records()))[["at", "statistic", "distance"]]
                rows += [(entry.method, *row) for row in curve.itertuples(index=False)]
    table = pd.DataFrame(rows, columns=["method", "at", "statistic", "distance"])
    return table.groupby(["method", "at", "statistic"], sort=False)["distance"].mean().reset_index()


def method_chart(name: str, data: str, table: pd.DataFrame, methods: Sequence[str]) -> Chart:
    """α, β, γ over the steps, a panel each, and a line per method."""
    known = [method for method in methods if method in set(table["method"])]
    colour = alt.Color(
        "method:N",
        title=None,
        sort=known,
        scale=alt.Scale(domain=known, range=PALETTE),
        legend=alt.Legend(orient="top", labelLimit=0, columns=3),
    )
    drawing = (
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
        title = f"{data}: {ratio.idxmin()} brings a class closest together across domains, α / γ {ratio.min():.2f}"
    return Chart(name, title, drawing, "Lines: α, β and γ of each method over the training steps", MEANING)
