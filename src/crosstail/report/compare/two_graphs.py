"""The transferability graphs of two models beside each other."""

from collections.abc import Sequence
from typing import NamedTuple

import altair as alt
import numpy as np
import pandas as pd

from crosstail.report.compare.charts import Figure
from crosstail.report.compare.table_files import number
from crosstail.report.graph_chart import graph_chart, reach_of
from crosstail.transfer import TransferabilityGraph
from crosstail.transfer.layout import aligned


class Model(NamedTuple):
    """A graph with its names."""

    name: str
    graph: TransferabilityGraph
    domains: Sequence[str]
    classes: Sequence[str]


def placed(first: Model, second: Model) -> list[pd.DataFrame]:
    """The nodes of both; where they are of the same pairs, the second picture is turned to lie as the first does."""
    one, other = (model.graph.nodes(model.domains, model.classes) for model in (first, second))
    if one[["domain", "class"]].equals(other[["domain", "class"]]):
        other[["x", "y"]] = aligned(other[["x", "y"]].to_numpy(), one[["x", "y"]].to_numpy())
    return [one, other]


def side_by_side(first: Model, second: Model) -> Figure:
    """Both graphs in one scale, with their α, β, γ, and which of them has the same class nearer together."""
    nodes = placed(first, second)
    reach = max(map(reach_of, nodes))
    charts = []
    for model, own in zip((first, second), nodes, strict=True):
        words = (f"{s} {number(v, 2)}" for s, v in zip("αβγ", model.graph.statistics, strict=True))
        charts.append(graph_chart(own, f"{model.name}: {', '.join(words)}", size=420, reach=reach))
    note = (
        "Each mark is a pair, and both pictures have one scale. α / γ is how far the same class of two domains is "
        "apart, of what two classes of two domains are: small is good."
    )
    alternative = "Two scatter plots: the pairs of each model in two dimensions"
    return Figure("side-by-side", _finding(first, second), alt.concat(*charts, columns=2), alternative, note)


def _finding(first: Model, second: Model) -> str:
    ratios = [model.graph.statistics.alpha / model.graph.statistics.gamma for model in (first, second)]
    if np.isnan(ratios).any():
        return f"{first.name} beside {second.name}: a class of one domain alone has no other to be near to"
    if abs(ratios[0] - ratios[1]) < 0.005:
        return f"{first.name} and {second.name} have the same class equally near together: α / γ {ratios[0]:.2f}"
    near, far = sorted(zip(ratios, (first.name, second.name), strict=True))
    return f"{near[1]} has the same class nearer together than {far[1]}: α / γ {near[0]:.2f} against {far[0]:.2f}"
