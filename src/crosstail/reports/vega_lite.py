"""Vega-Lite specifications from plain values, see https://vega.github.io/vega-lite/docs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

Options = Mapping[str, Any]
Channel = str | Options | Sequence[Any]
"""A field of the table as `name:Q` (N, O; for x2 and y2 only `name`), with options (`field`), or several of them."""
TYPES = {"Q": "quantitative", "N": "nominal", "O": "ordinal"}
TOP = {
    "$schema": "https://vega.github.io/schema/vega-lite/v6.json",
    "config": {"view": {"continuousWidth": 300, "continuousHeight": 300}},
}


def field(name: str, **options: Any) -> dict[str, Any]:
    """A field of the table, for a channel.

    >>> field("share:Q", title="share, %", axis={"tickCount": 5})
    {'field': 'share', 'type': 'quantitative', 'title': 'share, %', 'axis': {'tickCount': 5}}
    """
    name, _, kind = name.partition(":")
    return {"field": name, **({"type": TYPES[kind]} if kind else {}), **options}


def either(test: str, yes: Any, no: Any) -> dict[str, Any]:
    """One of two constants, by a test of each row, for a channel."""
    return {"condition": {"test": test, "value": yes}, "value": no}


@dataclass(frozen=True)
class Drawing:
    """A chart or a layer of one. Every method returns a copy, so that layers can share what they begin with."""

    parts: Options
    """The specification, with tables as data and drawings as layers and panels."""

    def having(self, **parts: Any) -> Drawing:
        """Some parts replaced, such as width and height."""
        return Drawing({**self.parts, **parts})

    def mark(self, kind: str, **style: Any) -> Drawing:
        """What is drawn for each row."""
        return self.having(mark={"type": kind, **style})

    def encode(self, **channels: Channel) -> Drawing:
        """More channels."""
        return self.having(encoding={**self.parts.get("encoding", {}), **_fields(channels)})

    def transform(self, *steps: Options) -> Drawing:
        """More steps from the table to the rows that are drawn."""
        return self.having(transform=[*self.parts.get("transform", ()), *steps])

    def where(self, test: str | Options) -> Drawing:
        """Only the rows that pass a test."""
        return self.transform({"filter": test})

    def calculate(self, **expressions: str) -> Drawing:
        """More fields."""
        return self.transform(*({"calculate": of, "as": name} for name, of in expressions.items()))

    def param(self, *params: Options) -> Drawing:
        """More selections, menus, sliders or fields to type in."""
        return self.having(params=[*self.parts.get("params", ()), *params])

    def zoom(self, name: str = "zoom") -> Drawing:
        """Axes that follow the mouse and its wheel."""
        return self.param({"name": name, "select": {"type": "interval", "encodings": ["x", "y"]}, "bind": "scales"})

    def to_dict(self) -> dict[str, Any]:
        """The specification as JSON: each table once, and menus, sliders and search fields at the top."""
        tables: dict[int, pd.DataFrame] = {}
        controls: dict[str, Options] = {}

        def plain(part: Any) -> Any:
            match part:
                case Drawing(parts):
                    own = {name: plain(value) for name, value in parts.items()}
                    params = own.pop("params", [])
                    controls.update({param["name"]: param for param in params if "select" not in param})
                    selections = [param for param in params if "select" in param]
                    return own | ({"params": selections} if selections else {})
                case pd.DataFrame():
                    tables[id(part)] = part
                    return {"name": f"table{[*tables].index(id(part))}"}
                case Mapping():
                    return {name: plain(value) for name, value in part.items()}
                case list() | tuple():
                    return [plain(value) for value in part]
            return part.item() if isinstance(part, np.generic) else part

        own = plain(self)
        params = [*own.pop("params", []), *controls.values()]
        datasets = {f"table{i}": rows(table) for i, table in enumerate(tables.values())}
        return TOP | own | ({"params": params} if params else {}) | {"datasets": datasets}


def draw(table: pd.DataFrame | None = None, **parts: Any) -> Drawing:
    """A chart without a mark so far; without a table, a panel of a chart that has one."""
    return Drawing(parts if table is None else {"data": table, **parts})


def layer(*layers: Drawing, **parts: Any) -> Drawing:
    """Charts on top of each other, of the same width and height."""
    return Drawing({"layer": layers, **parts})


def concat(*panels: Drawing, columns: int) -> Drawing:
    """Charts side by side."""
    return Drawing({"concat": panels, "columns": columns})


def facet(panel: Drawing, table: pd.DataFrame, by: Options, **parts: Any) -> Drawing:
    """A panel for each value of a field; `by` is the field, or has fields for rows and columns."""
    return Drawing({"data": table, "facet": by, "spec": panel, **parts})


def rows(table: pd.DataFrame) -> list[dict[str, Any]]:
    """The rows of a table; JSON has neither NaN nor infinity."""

    def values(column: pd.Series) -> list[Any]:
        known = np.isfinite(column) if column.dtype.kind == "f" else column.notna()
        return [value if there else None for value, there in zip(column.tolist(), known, strict=True)]

    names = [str(name) for name in table.columns]
    columns = (values(table[name]) for name in names)
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _fields(channels: Mapping[str, Channel]) -> dict[str, Any]:
    def own(channel: str | Options) -> Options:
        return field(channel) if isinstance(channel, str) else channel

    return {
        name: own(channel) if isinstance(channel, (str, Mapping)) else [own(one) for one in channel]
        for name, channel in channels.items()
    }
