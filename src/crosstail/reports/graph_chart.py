"""The transferability graph as a chart, of one model or of two side by side."""

import json
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from crosstail.reports.charts import INK, search
from crosstail.reports.document.model import Chart
from crosstail.reports.vega_lite import Drawing, Options, concat, draw, either, field, layer
from crosstail.reports.wording import shown_statistics
from crosstail.transfer import TransferabilityGraph
from crosstail.transfer.layout import aligned

LINKED = 200  # pairs up to which the lines of all classes are drawn
NAMED = 20  # classes up to which each has its name at the centre
LISTED = 40  # classes up to which there is a legend
READING = (
    "Each mark is a pair; transfer is good between close ones. Click a mark to show the lines of its class, type to "
    "find pairs, scroll to zoom."
)
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]


def reach_of(nodes: pd.DataFrame) -> float:
    """Half the length of the axes, so that all points fit."""
    return float(nodes.filter(regex=r"^[xy]\d*$").abs().to_numpy().max()) * 1.1 or 1.0


def graph_chart(
    nodes: pd.DataFrame,
    title: str = "",
    size: int | None = None,
    *,
    frames: Sequence[str] = (),
    start: int = 0,
    reach: float | None = None,
) -> Drawing:
    """Nodes (domain, class, count, x, y) in the plane: transfer is good between close pairs.

    Lines join the pairs of a class to their centre, which has its name. Clicking a mark selects its class, typing fades
    the pairs that do not match, and the wheel zooms. With many pairs only the lines of the selected class are drawn.
    With `frames`, the titles of the points x0, y0, x1, y1, ..., a slider steps through them from `start`. Charts to be
    compared need the same `reach`.
    """
    # The same scale on both axes, so that what the eye measures is the distance, whatever the page's width.
    reach = reach or reach_of(nodes)
    across: Options = {"domain": [-reach, reach]}
    down = across
    if size is None:
        across, down = (_fitting(reach, *sides) for sides in (("width", "height"), ("height", "width")))
    axis = dict.fromkeys(("labels", "ticks", "grid", "domain"), False)
    classes = list(dict.fromkeys(nodes["class"]))
    many = len(nodes) > LINKED
    scheme = {"scheme": "tableau10" if len(classes) <= 10 else "sinebow", "domain": classes}
    legend = None if len(classes) > LISTED else {"orient": "bottom", "columns": 5, "symbolOpacity": 1}
    colour = field("class:N", title="class", sort=classes, scale=scheme, legend=legend)
    typed, found = search("find_pair")
    # Parameter names must differ between the charts of a page.
    own = zlib.crc32(title.encode() + nodes.filter(regex="^[xy]").to_numpy().tobytes())
    picked = f"picked_{own}"
    base = draw(nodes).encode(color=colour)
    heading: str | Options = title
    if frames:
        frame, slider = f"frame_{own}", {"input": "range", "min": 0, "max": len(frames) - 1, "step": 1}
        base = base.calculate(x=f"datum['x' + {frame}]", y=f"datum['y' + {frame}]")
        base = base.param({"name": frame, "value": start, "bind": {**slider, "name": "evaluation "}})
        heading = {"text": {"expr": f"{json.dumps(list(frames))}[{frame}]"}}
    middle = [{"op": "mean", "field": end, "as": f"middle_{end}"} for end in "xy"]
    lines = base.transform({"joinaggregate": middle, "groupby": ["class"]}).where({"param": picked, "empty": not many})
    lines = lines.mark("rule", strokeWidth=1.5, strokeOpacity=0.55)
    places = {"x": field("x:Q", scale=across), "y": field("y:Q", scale=down)}
    lines = lines.encode(**places, x2="middle_x", y2="middle_y")
    named = base.transform(
        {"aggregate": [{"op": "mean", "field": end, "as": end} for end in "xy"], "groupby": ["class"]}
    )
    named = named.where({"param": picked, "empty": len(classes) <= NAMED}).mark("text", fontWeight="bold", dy=-4)
    named = named.encode(**places, text="class:N", color={"value": INK})
    distance = "distance in feature space (2-D scaling)"
    sizes = {"scale": {"range": [8, 80] if many else [60, 500]}, "legend": {"orient": "bottom", "tickCount": 3}}
    shapes = {"scale": {"range": SHAPES}, "legend": {"orient": "bottom", "columns": 3}}
    marks = base.mark("point", filled=True, stroke="white", strokeWidth=0.5).encode(
        x=field("x:Q", scale=across, axis=axis, title=distance),
        y=field("y:Q", scale=down, axis=axis, title=None),
        shape=field("domain:N", title="domain", sort=None, **shapes),
        size=field("count:Q", title="training samples", **sizes),
        opacity=either(found, 0.9, 0.05),
        tooltip=["domain:N", "class:N", "count:Q"],
    )
    marks = marks.param({"name": picked, "select": {"type": "point", "fields": ["class"]}}, typed).zoom(f"zoom_{own}")
    height = size or (640 if many else 480)
    return layer(lines, marks, named, title=heading, width=size or "container", height=height)


def _fitting(reach: float, side: str, other: str) -> Options:
    """From -`reach` to `reach` along the shorter side, and in proportion along the longer one."""
    end = f"{reach} * max(1, {side} / {other})"
    return {"domainMin": {"expr": f"-{end}"}, "domainMax": {"expr": end}, "nice": False, "zero": False}


class NamedGraph(NamedTuple):
    """A model's name, its graph, and the names of domains and classes."""

    name: str
    graph: TransferabilityGraph
    domains: Sequence[str]
    classes: Sequence[str]


def aligned_nodes(first: NamedGraph, *others: NamedGraph) -> list[pd.DataFrame]:
    """The nodes of all graphs; a layout of the same pairs as the first is rotated to match it."""
    one, *rest = (model.graph.nodes(model.domains, model.classes) for model in (first, *others))
    for other in rest:
        if one[["domain", "class"]].equals(other[["domain", "class"]]):
            other[["x", "y"]] = aligned(other[["x", "y"]].to_numpy(), one[["x", "y"]].to_numpy())
    return [one, *rest]


def side_by_side(*models: NamedGraph) -> Chart:
    """The graphs on the same scale, with their α, β, γ."""
    nodes = aligned_nodes(*models)
    reach = max(map(reach_of, nodes))
    charts = []
    for model, own in zip(models, nodes, strict=True):
        words = (f"{symbol} {shown}" for symbol, shown in zip("αβγ", shown_statistics(model.graph), strict=True))
        charts.append(graph_chart(own, f"{model.name}: {', '.join(words)}", size=420, reach=reach))
    note = (
        READING
        if len(models) == 1
        else (
            "Each mark is a pair; all charts have the same scale. α / γ is the distance between the same class in two "
            "domains, relative to the distance between different classes in two domains: small is good."
        )
    )
    alternative = "Scatter plots: the pairs of each model in two dimensions"
    return Chart("graphs", _finding(models), concat(*charts, columns=2), alternative, note)


def _finding(models: Sequence[NamedGraph]) -> str:
    names = " and ".join(model.name for model in models)
    ratios = [model.graph.statistics.alpha / model.graph.statistics.gamma for model in models]
    if np.isnan(ratios).any():
        return f"{names}: no class occurs in two domains, so α / γ is undefined"
    if len(models) == 1:
        return f"{names}: a class is {ratios[0]:.2f} times as far from itself in another domain as from others there"
    near, far = int(np.argmin(ratios)), int(np.argmax(ratios))
    if ratios[far] - ratios[near] < 0.005:
        return f"{names} align classes across domains equally well: α / γ {ratios[0]:.2f}"
    return (
        f"{models[near].name} aligns classes across domains better than {models[far].name}: "
        f"α / γ {ratios[near]:.2f} against {ratios[far]:.2f}"
    )
