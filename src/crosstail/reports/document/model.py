"""What a report is made of, whatever it is rendered to.

Text is plain text everywhere: a renderer escapes what its format would interpret, so names from the data are safe. In
paragraphs, items and notes, what stands between backticks is code.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:  # a table in the terminal needs neither
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from crosstail.reports.vega_lite import Drawing

CODE = re.compile(r"(?<![\w`])`([^`\n]+)`(?![\w`])")
"""Code in prose; a backtick inside a name starts none."""

_NUMBER = re.compile(r"(?:[\W\d_]|\b(?:to|of|n|p|e|s|ms|min|h|kB|MB|GB)\b)*")


@dataclass(frozen=True)
class Heading:
    """The title of a section, listed in the page's table of contents; of a part of one at level 3.

    A `closed` section is opened by a click on its title, as long as the page is not printed.
    """

    text: str
    level: Literal[2, 3] = 2
    closed: bool = False


@dataclass(frozen=True)
class Text:
    """A paragraph; `dim` for side notes, `lead` for the answer that a page begins with."""

    text: str
    dim: bool = False
    lead: bool = False


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


@dataclass(frozen=True)
class Card:
    """One number that answers a question, what it is called, and how far to trust it."""

    label: str
    value: str
    detail: str = ""
    tone: Literal["", "good", "warn", "bad"] = ""


@dataclass(frozen=True)
class Cards:
    """The most important numbers of a page, side by side."""

    cards: Sequence[Card]


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table of text; cells are (row, column), both from 0 below the header, and numbers are right-aligned.

    `name` is the stem of its files (see `files.save_table`) and `numbers` the unrounded values behind them.
    """

    header: Sequence[str]  # all empty: no header row
    rows: Sequence[Sequence[str]]
    name: str = ""
    title: str = ""
    note: str = ""
    emphasised: Set[tuple[int, int]] = frozenset()
    faint: Set[int] = frozenset()  # rows that matter less
    # Background of a cell, from 0 (light) to 1 (dark); NaN marks a cell that should not be empty.
    shades: Mapping[tuple[int, int], float] = field(default_factory=dict)
    words_last: bool = False  # the last column is prose: left-aligned and wrapped
    numbers: pd.DataFrame | None = None

    @property
    def words(self) -> list[bool]:
        """Whether each column holds words.

        >>> Table(header=["method", "accuracy", "shots"], rows=[["erm", "9.1 to 9.8", "few"], ["3", "–", ""]]).words
        [True, False, True]
        """
        columns = [[row[j] for row in self.rows] for j in range(len(self.header))]
        found = [j == 0 or not all(map(_NUMBER.fullmatch, cells)) for j, cells in enumerate(columns)]
        return [*found[:-1], found[-1] or self.words_last]


@dataclass(frozen=True)
class Chart:
    """A chart whose title states the finding, and a text alternative for readers who cannot see it."""

    name: str
    title: str
    drawing: Drawing
    alternative: str
    note: str = ""
    narrowest: int = 0
    widest: int = 1200
    """Pixels between which a chart that `fits` grows with the page; it scrolls on narrower ones."""

    @property
    def fits(self) -> bool:
        """Whether it is as wide as there is room."""
        return self.drawing.parts.get("width") == "container"


@dataclass(frozen=True)
class Picture:
    """An image (H, W, 3) with a label and a detail under it and a text alternative."""

    pixels: NDArray[np.uint8]
    label: str
    alternative: str
    detail: str = ""


@dataclass(frozen=True)
class Gallery:
    """Thumbnails under a caption, at most `side` pixels wide and high."""

    caption: str
    pictures: Sequence[Picture]
    side: int = 160


@dataclass(frozen=True)
class Choice:
    """Blocks for one entry of a menu and one place of a slider."""

    menu: str
    at: str
    blocks: Sequence[Cards | Code | Table]


@dataclass(frozen=True)
class Slider:
    """Blocks of which a reader chooses; `table` has all of them where nothing can be chosen, as in print.

    The choices of each entry of the menu follow each other, with the same places of the slider.
    """

    label: str
    choices: Sequence[Choice]
    start: int
    table: Table


Columns = dict[str, Callable[[Any], str]]
"""What a table shows of each record, by header."""

Block = Heading | Text | Code | Items | Cards | Table | Chart | Gallery | Slider


def plain(block: Block) -> Block:
    """The block, or its fallback where there are neither images nor cards nor anything to choose."""
    match block:
        case Slider():
            return block.table
        case Cards(cards):
            return Table(header=["", "", ""], rows=[[c.label, c.value, c.detail] for c in cards], words_last=True)
        case Gallery(caption, pictures):
            return bullets(f"{caption}: {picture.alternative}" for picture in pictures)
    return block


@dataclass(frozen=True)
class Document:
    """A title and blocks from top to bottom."""

    title: str
    blocks: Sequence[Block]


def records_table(records: Iterable[Any], columns: Columns, strong: Set[int] = frozenset(), **parts: Any) -> Table:
    """A row for each record, and a column for each header with what it shows of one; `strong` rows are emphasised."""
    rows = [[cell(record) for cell in columns.values()] for record in records]
    emphasised = {(i, j) for i in strong for j in range(len(columns))}
    return Table(header=list(columns), rows=rows, emphasised=emphasised, **parts)


def bullets(texts: Iterable[str]) -> Items:
    """A list of plain sentences."""
    return Items([Item(text) for text in texts])
