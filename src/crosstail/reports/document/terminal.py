"""Documents in the terminal, within 80 columns."""

from collections.abc import Iterable, Iterator

from rich import table as rich_table
from rich.console import Console, Group, RenderableType
from rich.text import Text as Words

from crosstail.reports.document.model import Block, Chart, Code, Heading, Items, Table, Text, plain

# From light to dark with a readable number on each; the number itself carries the meaning.
_LIGHT, _DARK = ("#deebf7", "#c6dbef", "#9ecae1", "#6baed6"), ("#3182bd", "#08519c")
_RAMP = [f"black on {colour}" for colour in _LIGHT] + [f"white on {colour}" for colour in _DARK]
_ALARM = "bold white on #b84a00"


def show(blocks: Iterable[Block], console: Console | None = None) -> None:
    """Print the blocks; commands and addresses in code are not wrapped, so that they can be copied."""
    console = console or Console()
    for block, part in _parts(blocks):
        console.print(part, highlight=False, soft_wrap=isinstance(block, Code))


def render(blocks: Iterable[Block]) -> Group:
    """The blocks as one renderable, for a live display."""
    return Group(*(part for _, part in _parts(blocks)))


def _parts(blocks: Iterable[Block]) -> Iterator[tuple[Block, RenderableType]]:
    """What to print, with an empty line before every heading but the first."""
    for i, block in enumerate(map(plain, blocks)):
        if i and (isinstance(block, Heading) or (isinstance(block, Table | Chart) and block.title)):
            yield block, Words()
        match block:
            case Heading(text, _):
                yield block, _words(text, "bold")
            case Text(text, dim, _):
                yield block, _words(text, "dim" if dim else "")
            case Code(text):
                yield block, _words("\n".join(f"  {line}" for line in text.splitlines()))
            case Items():
                yield block, _items(block)
            case Table() | Chart():
                body = _table(block) if isinstance(block, Table) else _words(block.alternative, "dim")
                title, note = _words(block.title, "bold"), _words(block.note, "dim")
                yield from ((block, part) for part in (title, body, note) if part)


def _words(text: str, style: str = "") -> Words:
    return Words(printable(text), style=style)


def _table(block: Table) -> rich_table.Table:
    """Numbers are never wrapped; names in the first column and prose in the last one are."""
    table = rich_table.Table(box=None, padding=(0, 1, 0, 0), show_header=any(block.header))
    last = len(block.header) - 1
    for j, (name, words) in enumerate(zip(block.header, block.words, strict=True)):
        wrapped = j == 0 or (block.words_last and j == last)
        table.add_column(
            _words(name),
            justify="left" if words else "right",
            overflow="fold" if wrapped else "ellipsis",
            no_wrap=not wrapped,
        )
    for i, row in enumerate(block.rows):
        cells = [_words(cell, _style(block, i, j)) for j, cell in enumerate(row)]
        table.add_row(*cells, style="dim" if i in block.faint else None)
    return table


def _style(block: Table, i: int, j: int) -> str:
    shade = block.shades.get((i, j))
    if shade is None:
        return "bold" if (i, j) in block.emphasised else ""
    return _ALARM if shade != shade else _RAMP[round(shade * (len(_RAMP) - 1))]


def _items(block: Items) -> rich_table.Table:
    table = rich_table.Table.grid(padding=(0, 1, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for item in block.items:
        text = _words(item.text)
        if item.detail:
            text.append(f"\n{printable(item.detail)}", style="dim")
        table.add_row(Words("!" if item.problem else "-", style="bold red" if item.problem else "bold"), text)
    return table


def cut(text: str, width: int) -> str:
    """Shorten text to a width."""
    return text if len(text) <= width else text[: width - 1] + "…"


def printable(text: str) -> str:
    """Replace control characters: file names may contain sequences that move the cursor.

    >>> printable("cat\\x1b[2J")
    'cat�[2J'
    """
    return "".join(sign if sign.isprintable() or sign == "\n" else "\ufffd" for sign in text)
