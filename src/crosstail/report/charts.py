"""Colours and encodings that all charts share."""

from collections.abc import Mapping
from typing import Any

import altair as alt

# Okabe and Ito's, safe for colour blindness
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
INK = "#8a8a92"  # legible on white and on black: the page may be either


def tip(field: str, form: str = "", title: str = "") -> alt.Tooltip:
    """One line of a tooltip, with a number format and another title than the field's name."""
    return alt.Tooltip(f"{field}:Q", **{k: v for k, v in {"format": form, "title": title}.items() if v})


def colours(field: str, of: Mapping[str, str], title: str | None = None, **legend: Any) -> alt.Color:
    """A colour for each name, with a legend in this order."""
    scale = alt.Scale(domain=list(of), range=list(of.values()))
    return alt.Color(f"{field}:N", title=title, sort=list(of), scale=scale, legend=alt.Legend(**legend))


def names(channel: Any, field: str, *, title: str | None = None, **axis: Any) -> Any:
    """An axis of names in the order of the data; `channel` is alt.X or alt.Y."""
    return channel(f"{field}:N", title=title, sort=None, axis=alt.Axis(**{"labelLimit": 120, **axis}))


def numbers(base: alt.Chart, field: str, form: str, dark: str) -> alt.Chart:
    """The number in each cell of a heat map, white where the cell is dark."""
    ink = alt.condition(dark, alt.value("white"), alt.value("black"))
    return base.mark_text(fontSize=11).encode(text=alt.Text(f"{field}:Q", format=form), color=ink)
