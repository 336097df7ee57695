"""Documents as text: one walk over the blocks, for any markup."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from crosstail.report.document.model import Block, Chart, Code, Document, Gallery, Heading, Item, Items, Table, Text


class Markup(NamedTuple):
    """How each kind of block is written."""

    title: Callable[[str], str]
    heading: Callable[[str], str]
    text: Callable[[str], str]
    code: Callable[[str], str]
    items: Callable[[Sequence[Item]], str]
    table: Callable[[Table], str]
    chart: Callable[[Chart], str]


def render(document: Document, markup: Markup) -> str:
    """The whole document; images become their text alternatives."""
    parts = [markup.title(document.title), *(_block(block, markup) for block in document.blocks)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _block(block: Block, markup: Markup) -> str:
    match block:
        case Heading(text):
            return markup.heading(text)
        case Text(text):
            return markup.text(text)
        case Code(text):
            return markup.code(text)
        case Items(items):
            return markup.items(items)
        case Table():
            return markup.table(block)
        case Chart():
            return markup.chart(block)
        case Gallery():
            return markup.items(block.alternatives)
