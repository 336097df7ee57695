"""The transferability graph as a picture."""

import altair as alt
import pandas as pd

SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]


def graph_chart(nodes: pd.DataFrame, title: str = "", size: int = 420) -> alt.Chart:
    """Nodes (domain, class, count, x, y) in the plane: near pairs transfer well to each other."""
    # One scale for both axes: what the eye measures must be the distance.
    reach = float(nodes[["x", "y"]].abs().to_numpy().max()) * 1.1 or 1.0
    scale = alt.Scale(domain=[-reach, reach])
    axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    classes = sorted(nodes["class"].unique())
    colour = alt.Scale(scheme="tableau10" if len(classes) <= 10 else "sinebow")
    return (
        alt.Chart(nodes, title=title, width=size, height=size)
        .mark_point(filled=True, opacity=0.85, stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("x:Q", scale=scale, axis=axis, title="distance in feature space (2-D scaling)"),
            y=alt.Y("y:Q", scale=scale, axis=axis, title=None),
            color=alt.Color("class:N", title="class", scale=colour),
            shape=alt.Shape("domain:N", title="domain", scale=alt.Scale(range=SHAPES)),
            size=alt.Size("count:Q", title="training samples", scale=alt.Scale(range=[60, 500])),
            tooltip=["domain:N", "class:N", "count:Q"],
        )
    )
