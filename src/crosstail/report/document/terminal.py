"""Documents in the terminal, within 80 columns."""

from collections.abc import Iterable, Iterator
from itertools import pairwise

from rich import table as rich_table
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.text import Text as Words

from crosstail.report.document.model import Block, Chart, Code, Gallery, Heading, Item, Items, Table, Text

# From light to dark with a readable number on each; the number itself carries the meaning.
_RAMP = (
    "black on #deebf7",
    "black on #c6dbef",
    "black on #9ecae1",
    "black on #6baed6",
    "white on #3182bd",
    "white on #08519c",
)
_ALARM = "bold white on #b84a00"


def show(blocks: Iterable[Block], console: Console | None = None) -> None:
    """Print the blocks."""
    (console or Console()).print(render(blocks), highlight=False)


def render(blocks: Iterable[Block]) -> Group:
    """The blocks as one renderable, with an empty line before every heading but the first."""
    blocks = list(blocks)
    parts: list[RenderableType] = []
    for before, block in pairwise([None, *blocks]):
        starts = isinstance(block, Heading) or (isinstance(block, Table | Chart) and block.title)
        if before is not None and starts:
            parts.append(Words())
        parts += _block(block)
    return Group(*parts)


def _block(block: Block | None) -> Iterator[RenderableType]:
    match block:
        case Heading(text):
            yield Words(printable(text), style="bold")
        case Text(text, dim):
            yield Words(printable(text), style="dim" if dim else "")
        case Code(text):
            yield Padding(Words(printable(text), overflow="fold"), (0, 0, 0, 2))
        case Items(items):
            yield _items(items)
        case Table():
            if block.title:
                yield Words(printable(block.title), style="bold")
            yield _table(block)
            if block.note:
                yield Words(printable(block.note), style="dim")
        case Chart():
            if block.title:
                yield Words(printable(block.title), style="bold")
            yield Words(printable(block.alternative), style="dim")
        case Gallery(caption, pictures):
            yield _items([Item(f"{caption}: {picture.alternative}") for picture in pictures])


def _table(block: Table) -> rich_table.Table:
    """Numbers are never wrapped; names in the first column and prose in the last one are."""
    table = rich_table.Table(box=None, padding=(0, 1, 0, 0), show_header=any(block.header))
    last = len(block.header) - 1
    for j, name in enumerate(block.header):
        words = j == 0 or (block.words_last and j == last)
        justify, overflow = ("left", "fold") if words else ("right", "ellipsis")
        table.add_column(Words(printable(name)), justify=justify, overflow=overflow, no_wrap=not words)  # type: ignore[arg-type]
    for i, row in enumerate(block.rows):
        cells = [Words(printable(cell), style=_style(block, i, j)) for j, cell in enumerate(row)]
        table.add_row(*cells, style="dim" if i in block.faint else None)
    return table


def _style(block: Table, i: int, j: int) -> str:
    shade = block.shades.get((i, j))
    if shade is None:
        return "bold" if (i, j) in block.emphasised else ""
    return _ALARM if shade != shade else _RAMP[round(shade * (len(_RAMP) - 1))]


def _items(items: Iterable[Item]) -> rich_table.Table:
    table = rich_table.Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for item in items:
        text = Words(printable(item.text))
        if item.detail:
            text.append(f"\n{printable(item.detail)}", style="dim")
        table.add_row(Words("!" if item.problem else "-", style="bold red" if item.problem else "bold"), text)
    return table


def cut(text: str, width: int) -> str:
    """Shorten text to a width.

    >>> cut("handwritten", 8)
    'handwri…'
    """
    return text if len(text) <= width else text[: width - 1] + "…"


def printable(text: str) -> str:
    """Replace control characters: file names may contain sequences that move the cursor.

    >>> printable("cat\\x1b[2J")
    'cat�[2J'
    """
    return "".join(sign if sign.isprintable() or sign == "\n" else "\ufffd" for sign in text)
