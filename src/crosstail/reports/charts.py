"""Colours and encodings that all charts share."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.reports.vega_lite import Drawing, Options, either, field

# Okabe and Ito's, safe for colour blindness
PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00"]
INK = "#8a8a92"  # legible on white and on black: the page may be either


def palette(names: Iterable[str]) -> dict[str, str]:
    """The colours in turn, grey for "others"."""
    return {name: INK if name == "others" else PALETTE[i % len(PALETTE)] for i, name in enumerate(names)}


def certain(low: ArrayLike, high: ArrayLike) -> NDArray[np.float64]:
    """The value of each interval that is closest to 0, to colour a gain by; NaN where there is no interval.

    >>> certain([-5.0, 2.0], [4.0, 9.0]).tolist()
    [0.0, 2.0]
    """
    return np.clip(np.zeros(np.shape(low)), np.asarray(low, float), np.asarray(high, float))


def tip(name: str, form: str = "", title: str = "") -> Options:
    """One line of a tooltip, with a number format and another title than the field's name."""
    return field(f"{name}:Q", **{key: value for key, value in (("format", form), ("title", title)) if value})


def colours(name: str, of: Mapping[str, str], title: str | None = None, **legend: Any) -> Options:
    """A colour for each value of a field, with a legend in this order."""
    scale = {"domain": list(of), "range": list(of.values())}
    return field(f"{name}:N", title=title, sort=list(of), scale=scale, legend=legend)


def shades(name: str, title: str, scale: Options, **legend: Any) -> Options:
    """Cells shaded by a number, with a legend above the chart."""
    return field(f"{name}:Q", title=title, scale=scale, legend={"orient": "top", "gradientLength": 160, **legend})


def ramp(domain: Sequence[float], colour: str = "0, 90, 160", **scale: Any) -> Options:
    """A scale from almost transparent to a colour (red, green, blue), so that light cells have the page's colour."""
    return {"domain": list(domain), "range": [f"rgba({colour}, {alpha})" for alpha in (0.06, 1)], **scale}


def diverging(reach: float) -> Options:
    """A scale from purple for -`reach` over transparent for 0 to green."""
    ends = "rgba(118, 42, 131, 1)", "rgba(130, 130, 130, 0)", "rgba(0, 120, 60, 1)"
    return {"domain": [-reach, 0, reach], "range": list(ends)}


def names(name: str, title: str | None = None, order: Sequence[str] | None = None, **axis: Any) -> dict[str, Any]:
    """An axis of names, in the order of the data if no other is given."""
    return field(f"{name}:N", title=title, sort=order, axis={"labelLimit": 120, **axis})


def search(name: str) -> tuple[Options, str]:
    """A search field, and the test whether a pair matches what is typed."""
    param = {"name": name, "value": "", "bind": {"input": "search", "name": "find "}}
    return param, f"indexof(lower(datum['class'] + ' ' + datum['domain']), lower({name})) >= 0"


def numbers(base: Drawing, name: str, form: str, dark: str, dy: int = 0) -> Drawing:
    """The number in each cell of a heat map, white where the cell is dark, the colour of the page's text elsewhere."""
    text = base.mark("text", fontSize=12, dy=dy)
    return text.encode(text=field(f"{name}:Q", format=form), color=either(dark, "white", "currentColor"))
