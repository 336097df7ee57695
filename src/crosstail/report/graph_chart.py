"""The transferability graph as a chart, and those of two models side by side."""

import json
import zlib
from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from crosstail.report.charts import search
from crosstail.report.document.model import Chart
from crosstail.report.wording import shown_statistics
from crosstail.transfer import TransferabilityGraph
from crosstail.transfer.layout import aligned

LINKED = 200  # pairs up to which the lines of all classes are drawn
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
) -> alt.LayerChart:
    """Nodes (domain, class, count, x, y) in the plane: transfer is good between close pairs.

    Lines join the pairs of a class to their centre. Clicking a mark selects its class, typing fades the pairs that do
    not match, and the wheel zooms. With many pairs only the lines of the selected class are drawn. With `frames`, the
    titles of the points x0, y0, x1, y1, ..., a slider steps through them from `start`. Charts to be compared need the
    same `reach`.
    """
    # The same scale on both axes, so that what the eye measures is the distance, whatever the page's width.
    reach = reach or reach_of(nodes)
    across = down = alt.Scale(domain=[-reach, reach])
    if size is None:
        across, down = (_fitting(reach, *sides) for sides in (("width", "height"), ("height", "width")))
    axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    classes = list(dict.fromkeys(nodes["class"]))
    many = len(nodes) > LINKED
    colour_scale = alt.Scale(scheme="tableau10" if len(classes) <= 10 else "sinebow", domain=classes)
    legend = None if len(classes) > LISTED else alt.Legend(orient="bottom", columns=5, symbolOpacity=1)
    colour = alt.Color("class:N", title="class", sort=classes, scale=colour_scale, legend=legend)
    field, found = search("find_pair")
    # Parameter names must differ between the charts of a page.
    own = zlib.crc32(title.encode() + nodes.filter(regex="^[xy]").to_numpy().tobytes())
    picked = alt.selection_point(name=f"picked_{own}", fields=["class"], empty=not many)
    base = alt.Chart(nodes)
    heading: str | alt.TitleParams = title
    if frames:
        moved = alt.binding_range(min=0, max=len(frames) - 1, step=1, name="evaluation ")
        frame = alt.param(name=f"frame_{own}", value=start, bind=moved)
        base = base.transform_calculate(x=f"datum['x' + {frame.name}]", y=f"datum['y' + {frame.name}]")
        base = base.add_params(frame)
        heading = alt.TitleParams(alt.ExprRef(f"{json.dumps(list(frames))}[{frame.name}]"))
    centred = base.transform_joinaggregate(middle_x="mean(x)", middle_y="mean(y)", groupby=["class"])
    lines = centred.transform_filter(picked).mark_rule(strokeWidth=1.5, strokeOpacity=0.55)
    x, y = alt.X("x:Q", scale=across), alt.Y("y:Q", scale=down)
    lines = lines.encode(x=x, y=y, x2="middle_x:Q", y2="middle_y:Q", color=colour)
    shape = alt.Shape("domain:N").scale(range=SHAPES)
    size_of = alt.Size("count:Q").scale(range=[8, 80] if many else [60, 500])
    marks = base.mark_point(filled=True, stroke="white", strokeWidth=0.5).add_params(picked, field)
    marks = marks.encode(
        x=x.axis(axis).title("distance in feature space (2-D scaling)"),
        y=y.axis(axis).title(None),
        color=colour,
        shape=shape.title("domain").sort(None).legend(orient="bottom", columns=3),
        size=size_of.title("training samples").legend(orient="bottom", tickCount=3),
        opacity=alt.condition(found, alt.value(0.9), alt.value(0.05)),
        tooltip=["domain:N", "class:N", "count:Q"],
    )
    layers = (lines + marks.interactive(name=f"zoom_{own}")).properties(title=heading)
    return layers.properties(width=size or "container", height=size or (640 if many else 480))


def _fitting(reach: float, side: str, other: str) -> alt.Scale:
    """From -`reach` to `reach` along the shorter side, and in proportion along the longer one."""
    end = f"{reach} * max(1, {side} / {other})"
    return alt.Scale(domainMin=alt.ExprRef(f"-{end}"), domainMax=alt.ExprRef(end), nice=False, zero=False)


class NamedGraph(NamedTuple):
    """A model's name, its graph, and the names of domains and classes."""

    name: str
    graph: TransferabilityGraph
    domains: Sequence[str]
    classes: Sequence[str]


def aligned_nodes(first: NamedGraph, second: NamedGraph) -> list[pd.DataFrame]:
    """The nodes of both graphs; if they have the same pairs, the second layout is rotated to match the first."""
    one, other = (model.graph.nodes(model.domains, model.classes) for model in (first, second))
    if one[["domain", "class"]].equals(other[["domain", "class"]]):
        other[["x", "y"]] = aligned(other[["x", "y"]].to_numpy(), one[["x", "y"]].to_numpy())
    return [one, other]


def side_by_side(first: NamedGraph, second: NamedGraph) -> Chart:
    """Both graphs on the same scale, with their α, β, γ."""
    nodes = aligned_nodes(first, second)
    reach = max(map(reach_of, nodes))
    charts = []
    for model, own in zip((first, second), nodes, strict=True):
        words = (f"{symbol} {shown}" for symbol, shown in zip("αβγ", shown_statistics(model.graph), strict=True))
        charts.append(graph_chart(own, f"{model.name}: {', '.join(words)}", size=420, reach=reach))
    note = (
        "Each mark is a pair; both charts have the same scale. α / γ is the distance between the same class in two "
        "domains, relative to that between different classes in two domains: small is good."
    )
    alternative = "Two scatter plots: the pairs of each model in two dimensions"
    return Chart("graphs", _finding(first, second), alt.concat(*charts, columns=2), alternative, note)


def _finding(first: NamedGraph, second: NamedGraph) -> str:
    ratios = [model.graph.statistics.alpha / model.graph.statistics.gamma for model in (first, second)]
    if np.isnan(ratios).any():
        return f"{first.name} and {second.name}: no class occurs in two domains, so α / γ is undefined"
    if abs(ratios[0] - ratios[1]) < 0.005:
        return f"{first.name} and {second.name} align classes across domains equally well: α / γ {ratios[0]:.2f}"
    near, far = sorted(zip(ratios, (first.name, second.name), strict=True))
    return f"{near[1]} aligns classes across domains better than {far[1]}: α / γ {near[0]:.2f} against {far[0]:.2f}"
