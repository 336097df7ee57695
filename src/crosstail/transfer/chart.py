"""The transferability graph as a picture."""

import zlib

import altair as alt
import pandas as pd

LINKED = 200  # pairs up to which the lines of every class are drawn at once
LISTED = 40  # classes up to which there is a legend
SHAPES = ["circle", "square", "triangle-up", "diamond", "cross", "triangle-down"]


def class_links(nodes: pd.DataFrame) -> pd.DataFrame:
    """A line between every two domains of a class: x, y, x2, y2, class."""
    places = nodes[["domain", "class", "x", "y"]]
    both = places.merge(places, on="class", suffixes=("", "2"))
    return both[both["domain"] < both["domain2"]][["class", "x", "y", "x2", "y2"]]


def graph_chart(nodes: pd.DataFrame, title: str = "", size: int = 420) -> alt.LayerChart:
    """Nodes (domain, class, count, x, y) in the plane: near pairs transfer well, and lines join those of one class.

    A click on a mark picks its class; what is typed fades the pairs without it; the wheel zooms. With many pairs only
    the lines of the picked class are drawn.
    """
    # One scale for both axes: what the eye measures must be the distance.
    reach = float(nodes[["x", "y"]].abs().to_numpy().max()) * 1.1 or 1.0
    scale = alt.Scale(domain=[-reach, reach])
    axis = alt.Axis(labels=False, ticks=False, grid=False, domain=False)
    classes = list(dict.fromkeys(nodes["class"]))
    many = len(nodes) > LINKED
    colour = alt.Color(
        "class:N",
        title="class",
        sort=classes,
        scale=alt.Scale(scheme="tableau10" if len(classes) <= 10 else "sinebow", domain=classes),
        legend=None if len(classes) > LISTED else alt.Legend(orient="bottom", columns=5, symbolOpacity=1),
    )
    search = alt.param(name="find_pair", value="", bind=alt.binding(input="search", name="find "))
    found = f"indexof(lower(datum['class'] + ' ' + datum['domain']), lower({search.name})) >= 0"
    own = zlib.crc32(title.encode() + nodes[["x", "y"]].to_numpy().tobytes())  # names for this chart beside others
    picked = alt.selection_point(name=f"picked_{own}", fields=["class"], empty=not many)
    lines = (
        alt.Chart(class_links(nodes))
        .mark_rule(strokeWidth=1.5)
        .encode(
            x=alt.X("x:Q", scale=scale),
            y=alt.Y("y:Q", scale=scale),
            x2="x2:Q",
            y2="y2:Q",
            color=colour,
            opacity=alt.condition(picked, alt.value(0.55), alt.value(0)),
        )
    )
    marks = (
        alt.Chart(nodes)
        .mark_point(filled=True, stroke="white", strokeWidth=0.5)
        .encode(
            x=alt.X("x:Q", scale=scale, axis=axis, title="distance in feature space (2-D scaling)"),
            y=alt.Y("y:Q", scale=scale, axis=axis, title=None),
            color=colour,
            shape=alt.Shape(
                "domain:N",
                title="domain",
                scale=alt.Scale(range=SHAPES),
                sort=None,
                legend=alt.Legend(orient="bottom", columns=3),
            ),
            size=alt.Size(
                "count:Q",
                title="training samples",
                scale=alt.Scale(range=[20, 160] if many else [60, 500]),
                legend=alt.Legend(orient="bottom"),
            ),
            opacity=alt.condition(found, alt.value(0.9), alt.value(0.05)),
            tooltip=["domain:N", "class:N", "count:Q"],
        )
        .add_params(picked, search)
        .interactive(name=f"zoom_{own}")
    )
    return (lines + marks).properties(title=title, width=size, height=size)
