"""Charts of a run, drawn from its tables."""

from math import ceil
from typing import Any

import pandas as pd

from crosstail.metrics import find
from crosstail.reports.charts import INK, PALETTE, colours, names, numbers, palette, ramp, shades, tip
from crosstail.reports.vega_lite import Channel, Drawing, Options, concat, draw, either, field, layer
from crosstail.reports.wording import selected_on

NUMBERED = 40  # classes or domains up to which cells have room for a number
TALL = 16  # the same, up to which cells have room for two lines
FLAT = 40  # letters above a heat map that fit side by side on a phone
PANEL = 30  # rows of smaller cells in one panel
BAD = "190, 65, 0"


def pair_chart(pairs: pd.DataFrame, count_title: str) -> Drawing:
    """Heat map of the test accuracy per pair; the longer of domains and classes runs downwards, in panels if long.

    Cells are coloured by the upper end of the interval: a pair is orange only if its test samples show that it is bad.
    Few-shot pairs have a triangle, zero-shot pairs a cross; pairs without test samples have a dash.
    """
    across, down = "domain", "class"
    if pairs["domain"].nunique() > pairs["class"].nunique():
        across, down = down, across
    rows = pairs[down].nunique()
    if rows <= NUMBERED:
        tall = rows <= TALL
        layers = _numbered(_cells(pairs, across, down, count_title), tall)
        return layer(*layers, width="container", height=rows * (44 if tall else 26))
    mean = pairs.groupby(down)["accuracy"].transform("mean")  # long lists are easier to read from worst to best
    pairs = pairs.assign(mean=mean).sort_values(["mean", down], kind="stable")
    rank = pairs[down].map({name: i for i, name in enumerate(dict.fromkeys(pairs[down]))})
    equal = ceil(rows / ceil(rows / PANEL))
    parts = (_coloured(_cells(part, across, down, count_title)) for _, part in pairs.groupby(rank // equal))
    return concat(*(layer(*part, width={"step": 30}, height={"step": 15}) for part in parts), columns=4)


def _cells(pairs: pd.DataFrame, across: str, down: str, count_title: str) -> Drawing:
    tooltip = [field("domain:N"), field("class:N"), tip("count", title=count_title)]
    tooltip += [tip("accuracy", ".1f", "test accuracy, %"), tip("hits", title="correct")]
    tooltip += [tip("known", ".1f", "with the domain known, %")] * ("known" in pairs)
    tooltip += [tip("tested", title="of test samples")]
    tooltip += [tip("low", ".1f", "95 % interval from"), tip("high", ".1f", "to")]
    angle = 0 if sum(map(len, pairs[across].unique())) <= FLAT else -40
    gap = {"scale": {"paddingInner": 0.04}}
    bare: dict[str, Any] = {"domain": False, "ticks": False}
    x = names(across, order=list(pairs[across].unique()), orient="top", labelAngle=angle, labelLimit=200, **bare)
    y = names(down, order=list(pairs[down].unique()), labelLimit=160, labelOverlap=False, **bare)
    return draw(pairs).encode(x=x | gap, y=y | gap, tooltip=tooltip)


def _coloured(base: Drawing, beside: int = 0) -> list[Drawing]:
    """The cells, and `beside` their middle the marks of rare pairs."""
    colour = shades("high", "accuracy at best, %", ramp([100, 20], BAD, clamp=True))
    shapes = {"domain": ["few", "zero"], "range": ["triangle-up", "cross"]}
    shape = field("shot:N", title="training samples", scale=shapes, legend={"orient": "top"})
    rare = base.where("datum.shot == 'few' || datum.shot == 'zero'")
    marks = rare.mark("point", fill=PALETTE[0], stroke="white", strokeWidth=0.8, size=32, opacity=1, xOffset=beside)
    cells = base.where("datum.tested > 0").mark("rect", cornerRadius=2).encode(color=colour)
    return [cells, marks.encode(shape=shape)]


def _numbered(base: Drawing, tall: bool) -> list[Drawing]:
    """Accuracy in every cell, and if the cells are `tall`, below it the samples."""
    tested, dark = base.where("datum.tested > 0"), "datum.high < 45"
    layers = [*_coloured(base, beside=17), base.where("datum.tested == 0").mark("text", text="–")]
    if tall:
        samples = tested.calculate(of="datum.hits + '/' + datum.tested").mark("text", fontSize=10, dy=11, opacity=0.75)
        layers.append(samples.encode(text="of:N", color=either(dark, "white", "currentColor")))
    return [*layers, numbers(tested, "accuracy", ".0f", dark, dy=-5 if tall else 0)]


def selection_chart(table: pd.DataFrame, on: str) -> Drawing:
    """The selection metric per step, on validation and test, with a ring around the reported evaluation."""
    share = find(on).share
    y = field("value:Q", title=selected_on(on) + ", %" * share, scale={"zero": False})
    tooltip = ["stage:O", "step:Q", "split:N", tip("value", ".1f" if share else ".3f", selected_on(on))]
    base = _curve(table, "split", ["validation", "test"], y, tooltip)
    ring = base.where("datum.reported").mark("point", size=160, strokeWidth=2, filled=False)
    return _curves(base.mark("line", point=True), ring, *_second_stage(table))


def loss_chart(table: pd.DataFrame) -> Drawing:
    """Each loss term per step."""
    terms, tooltip = list(dict.fromkeys(table["term"])), ["stage:O", "step:Q", "term:N", tip("loss", ".4g")]
    base = _curve(table, "term", terms, field("loss:Q", title="loss"), tooltip)
    return _curves(base.mark("line", point=True), *_second_stage(table))


def transfer_chart(table: pd.DataFrame) -> Drawing:
    """α, β, γ per step."""
    order, y = list(dict.fromkeys(table["statistic"])), field("distance:Q", title="mean distance in feature space")
    base = _curve(table, "statistic", order, y, ["step:Q", "statistic:N", tip("distance", ".2f")])
    dash = field("statistic:N", sort=order, legend=None)  # β and γ often coincide
    return _curves(base.mark("line", point=True).encode(strokeDash=dash))


def _curves(*layers: Drawing) -> Drawing:
    return layer(*layers, width="container", height=240)


def _curve(table: pd.DataFrame, colour: str, order: list[str], y: Options, tooltip: Channel) -> Drawing:
    color = colours(colour, palette(order), orient="bottom", labelLimit=0, columns=3)
    x = field("at:Q", title="step", axis={"tickCount": 8})
    return draw(table).encode(x=x, y=y, color=color, detail="stage:O", tooltip=tooltip)


def _second_stage(table: pd.DataFrame) -> list[Drawing]:
    """A vertical line where the second stage begins, if there are two."""
    if table["stage"].nunique() < 2:
        return []
    begins = (table["at"] - table["step"]).max()
    base = draw(pd.DataFrame({"at": [begins], "what": "second stage"})).encode(x="at:Q")
    text = base.mark("text", color=INK, align="left", dx=5, y=6).encode(text="what:N")
    return [base.mark("rule", color=INK, strokeDash=[4, 4]), text]
