"""Tables as pictures: drawing only, no arithmetic that a reader could not check in the table."""

import altair as alt
import pandas as pd

# Okabe and Ito's colours, which colour-blind readers can tell apart.
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]


def label_chart(table: pd.DataFrame) -> alt.FacetChart:
    """Training samples per class, one panel per domain."""
    bars = (
        alt.Chart(table, width=280, height=140)
        .mark_bar(color=PALETTE[0])
        .encode(
            x=alt.X("class:N", title="class", sort=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("count:Q", title="training samples"),
            tooltip=["domain:N", "class:N", "count:Q"],
        )
    )
    order = list(dict.fromkeys(table["domain"]))
    return bars.facet(column=alt.Column("domain:N", title=None, sort=order))


def gain_chart(table: pd.DataFrame) -> alt.LayerChart:
    """Gain per pair as a heat map; the number in a cell is the pair's training count."""
    reach = max(float(table["gain"].abs().max()), 1.0)
    base = alt.Chart(table, width=760, height=44 * table["domain"].nunique()).encode(
        x=alt.X("class:N", title="class", sort=None, axis=alt.Axis(labelAngle=0)),
        y=alt.Y("domain:N", title=None, sort=None),
        tooltip=["domain:N", "class:N", "count:Q", alt.Tooltip("gain:Q", format="+.1f", title="gain, points")],
    )
    cells = base.mark_rect().encode(
        color=alt.Color(
            "gain:Q", title="gain, points", scale=alt.Scale(scheme="purplegreen", domain=[-reach, reach], domainMid=0)
        )
    )
    dark_cell = abs(alt.datum.gain) > 0.6 * reach
    numbers = base.mark_text(fontSize=12).encode(
        text="count:Q", color=alt.condition(dark_cell, alt.value("white"), alt.value("black"))
    )
    return cells + numbers


def curve_chart(table: pd.DataFrame, title: str) -> alt.LayerChart:
    """Validation accuracy after the start: the mean of the seeds, and their range as a band."""
    order = list(dict.fromkeys(table["method"]))
    base = alt.Chart(table[table["step"] > 0], width=420, height=260, title=title).encode(
        x=alt.X("step:Q", title="step"),
        color=alt.Color(
            "method:N",
            title=None,
            sort=order,
            scale=alt.Scale(domain=order, range=PALETTE),
            legend=alt.Legend(orient="bottom", labelLimit=0),
        ),
    )
    band = base.mark_area(opacity=0.2).encode(
        y=alt.Y("min:Q", title="validation pair average, %", scale=alt.Scale(zero=False)), y2="max:Q"
    )
    line = base.mark_line(point=True).encode(
        y="mean:Q", tooltip=["method:N", "step:Q", alt.Tooltip("mean:Q", format=".1f")]
    )
    return band + line
