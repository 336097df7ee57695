"""The transferability graphs of two models side by side."""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from crosstail.report.document.model import Chart
from crosstail.report.graph_chart import graph_chart, reach_of
from crosstail.report.wording import number
from crosstail.transfer import TransferabilityGraph
from crosstail.transfer.layout import aligned


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
        words = (f"{s} {number(v, 2)}" for s, v in zip("αβγ", model.graph.statistics, strict=True))
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
