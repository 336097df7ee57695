"""Charts of a run, drawn from its tables."""

from typing import Any

import altair as alt
import pandas as pd

from crosstail.report.charts import INK, PALETTE, colours, names, numbers, palette, shades, tip

NUMBERED = 40  # classes or domains up to which cells have room for a number
PANEL = 60  # rows of smaller cells in one panel


def pair_chart(pairs: pd.DataFrame, count_title: str) -> alt.ConcatChart:
    """Heat map of the test accuracy per pair; the longer of domains and classes runs downwards, in panels if long.

    Few-shot pairs have a triangle, zero-shot pairs a cross; grey cells have no test samples.
    """
    across, down = "domain", "class"
    if pairs["domain"].nunique() > pairs["class"].nunique():
        across, down = down, across
    numbered = pairs[down].nunique() <= NUMBERED
    if not numbered:  # long lists are easier to read from worst to best
        mean = pairs.groupby(down)["accuracy"].transform("mean")
        pairs = pairs.assign(mean=mean).sort_values(["mean", down], kind="stable")
    rank = pairs[down].map({name: i for i, name in enumerate(dict.fromkeys(pairs[down]))})
    panels = [_panel(part, across, down, count_title, numbered) for _, part in pairs.groupby(rank // PANEL)]
    return alt.concat(*panels, columns=4)


def _panel(pairs: pd.DataFrame, across: str, down: str, count_title: str, numbered: bool) -> alt.LayerChart:
    width, height = (64, 26) if numbered else (22, 13)
    tooltip: list[Any] = ["domain:N", "class:N", tip("count", title=count_title)]
    tooltip += [tip("accuracy", ".1f", "test accuracy, %"), tip("hits", title="correct")]
    tooltip += [tip("known", ".1f", "with the domain known, %")] * ("known" in pairs)
    tooltip += [tip("tested", title="of test samples")]
    tooltip += [tip("low", ".1f", "95 % interval from"), tip("high", ".1f", "to")]
    base = alt.Chart(pairs, width=alt.Step(width), height=alt.Step(height)).encode(
        x=names(alt.X, across, orient="top", labelAngle=-40), y=names(alt.Y, down, labelOverlap=False), tooltip=tooltip
    )
    scale = alt.Scale(domain=[0, 50, 100], range=["#7f2704", "#f16913", "#fff5eb"])
    colour = shades("accuracy", "test accuracy, %", scale)
    shapes = alt.Scale(domain=["few", "zero"], range=["triangle-up", "cross"])
    shape = alt.Shape("shot:N", title="training samples", scale=shapes, legend=alt.Legend(orient="top"))
    cells = base.transform_filter("datum.tested > 0")
    marks = base.transform_filter("datum.shot == 'few' || datum.shot == 'zero'").mark_point(
        fill=PALETTE[0], stroke="white", strokeWidth=0.8, size=40, opacity=1, xOffset=22 if numbered else 0
    )
    untested = base.mark_rect(color=INK, opacity=0.3, stroke="white")
    chart = untested + cells.mark_rect(stroke="white").encode(color=colour) + marks.encode(shape=shape)
    return chart + numbers(cells, "accuracy", ".0f", "datum.accuracy < 40") if numbered else chart


def accuracy_chart(table: pd.DataFrame, metric: str) -> alt.LayerChart | alt.FacetChart:
    """A metric per step on validation and test, with a ring around the reported evaluation."""
    y = alt.Y("accuracy:Q", title=f"{metric}, %", scale=alt.Scale(zero=False))
    base = _curve(table, "split", ["validation", "test"], y, ["stage:O", "step:Q", "split:N", tip("accuracy", ".1f")])
    ring = base.transform_filter("datum.reported").mark_point(size=160, strokeWidth=2, filled=False)
    return alt.layer(base.mark_line(point=True), ring, *_second_stage(table))


def loss_chart(table: pd.DataFrame) -> alt.LayerChart | alt.FacetChart:
    """Each loss term per step."""
    terms, tooltip = list(dict.fromkeys(table["term"])), ["stage:O", "step:Q", "term:N", tip("loss", ".4g")]
    base = _curve(table, "term", terms, alt.Y("loss:Q", title="loss"), tooltip)
    return alt.layer(base.mark_line(point=True), *_second_stage(table))


def transfer_chart(table: pd.DataFrame) -> alt.Chart:
    """α, β, γ per step."""
    order, y = list(dict.fromkeys(table["statistic"])), alt.Y("distance:Q", title="mean distance in feature space")
    base = _curve(table, "statistic", order, y, ["step:Q", "statistic:N", tip("distance", ".2f")])
    dash = alt.StrokeDash("statistic:N", sort=order, legend=None)  # β and γ often coincide
    return base.mark_line(point=True).encode(strokeDash=dash)


def _curve(table: pd.DataFrame, colour: str, order: list[str], y: alt.Y, tooltip: list[Any]) -> alt.Chart:
    color = colours(colour, palette(order), orient="bottom", labelLimit=0, columns=3)
    base = alt.Chart(table, width="container", height=240)
    return base.encode(x=alt.X("at:Q", title="step"), y=y, color=color, detail="stage:O", tooltip=tooltip)


def _second_stage(table: pd.DataFrame) -> list[alt.Chart]:
    """A vertical line where the second stage begins, if there are two."""
    if table["stage"].nunique() < 2:
        return []
    begins = (table["at"] - table["step"]).max()
    base = alt.Chart(pd.DataFrame({"at": [begins], "what": "second stage"})).encode(x="at:Q")
    text = base.mark_text(color=INK, align="left", dx=5, y=6).encode(text="what:N")
    return [base.mark_rule(color=INK, strokeDash=[4, 4]), text]
