"""What a report is made of, whatever it is rendered to.

Text is plain text everywhere: a renderer escapes what its format would interpret, so names from the data are safe.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # a table in the terminal needs neither
    import altair as alt
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    Drawing = alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart | alt.HConcatChart | alt.VConcatChart


@dataclass(frozen=True)
class Heading:
    """The title of a section."""

    text: str


@dataclass(frozen=True)
class Text:
    """A paragraph; `dim` for side notes."""

    text: str
    dim: bool = False


@dataclass(frozen=True)
class Code:
    """A command line to copy."""

    text: str


@dataclass(frozen=True)
class Item:
    """One entry of a list, with details that matter less; problems are marked."""

    text: str
    detail: str = ""
    problem: bool = False


@dataclass(frozen=True)
class Items:
    """A bulleted list."""

    items: Sequence[Item]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of text. Cells are addressed as (row, column), both from 0, the header not counted.

    `name` is the stem of its files (see `files.save_table`) and `numbers` the unrounded values behind them.
    """

    header: Sequence[str]
    """All empty: no header row."""
    rows: Sequence[Sequence[str]]
    name: str = ""
    title: str = ""
    note: str = ""
    emphasised: Set[tuple[int, int]] = frozenset()
    faint: Set[int] = frozenset()
    """Rows that matter less."""
    shades: Mapping[tuple[int, int], float] = field(default_factory=dict)
    """Background of a cell, from 0 (light) to 1 (dark); NaN marks a cell that should not be empty."""
    words_last: bool = False
    """The last column is prose: left-aligned and wrapped."""
    numbers: pd.DataFrame | None = None


@dataclass(frozen=True)
class Chart:
    """A chart whose title states the finding, and a text alternative for readers who cannot see it."""

    name: str
    title: str
    drawing: Drawing
    alternative: str
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """An image (H, W, 3) with a label under it and a text alternative."""

    pixels: NDArray[np.uint8]
    label: str
    alternative: str


@dataclass(frozen=True)
class Gallery:
    """Thumbnails under a caption, at most `side` pixels wide and high."""

    caption: str
    pictures: Sequence[Picture]
    side: int = 64

    @property
    def alternatives(self) -> Items:
        """What to show where there are no images."""
        return bullets(f"{self.caption}: {picture.alternative}" for picture in self.pictures)


Block = Heading | Text | Code | Items | Table | Chart | Gallery


@dataclass(frozen=True)
class Document:
    """A title and blocks from top to bottom."""

    title: str
    blocks: Sequence[Block]


def bullets(texts: Iterable[str]) -> Items:
    """A list of plain sentences."""
    return Items([Item(text) for text in texts])
