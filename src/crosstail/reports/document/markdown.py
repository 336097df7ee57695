"""Documents as Markdown."""

import re
from collections.abc import Callable
from typing import Any

from crosstail.reports.document.model import CODE, Chart, Code, Document, Heading, Item, Items, Table, Text, plain
from crosstail.reports.wording import sentence


def render(document: Document) -> str:
    """The whole document; charts and images become their text alternatives."""
    blocks = (document, *map(plain, document.blocks))
    return "\n\n".join(filter(None, (_MARKUP[type(block)](block) for block in blocks))) + "\n"


def table(block: Table) -> str:
    """The table alone, emphasised cells in bold.

    >>> print(table(Table(header=["a|b"], rows=[["1"]], emphasised={(0, 0)})))
    | a\\|b |
    |---|
    | **1** |
    """
    rows = [[escape(cell) for cell in row] for row in (block.header, *block.rows)]
    for i, j in block.emphasised:
        rows[i + 1][j] = f"**{rows[i + 1][j]}**"
    head, *body = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([head, "|" + "---|" * len(block.header), *body])


def escape(text: str) -> str:
    """Escape everything that Markdown or HTML would interpret."""
    return re.sub(r"([\\|*_`<>\[\]&~$])", r"\\\1", " ".join(text.splitlines()))


def _prose(words: str) -> str:
    """Plain text with code between backticks."""
    parts = CODE.split(words)
    return "".join(f"`{part}`" if i % 2 else escape(part) for i, part in enumerate(parts))


def _heading(text: str, level: int = 3) -> str:
    return f"{'#' * level} {escape(text)}"


def _code(block: Code) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", block.text)), default=0))
    return f"{fence}sh\n{block.text}\n{fence}"


def _item(item: Item) -> str:
    return ("- **Problem:** " if item.problem else "- ") + _prose(f"{item.text} {item.detail}".strip())


def _titled(block: Table | Chart, body: str) -> str:
    return "\n\n".join(filter(None, (block.title and _heading(block.title), body, _prose(block.note))))


_MARKUP: dict[type, Callable[[Any], str]] = {
    Document: lambda block: f"# {escape(block.title)}",
    Heading: lambda block: _heading(block.text, block.level),
    Text: lambda block: _prose(block.text),
    Code: _code,
    Items: lambda block: "\n".join(map(_item, block.items)),
    Table: lambda block: _titled(block, table(block) if block.rows else ""),
    Chart: lambda block: _titled(block, escape(sentence(block.alternative))),
}
