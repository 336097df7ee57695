"""Documents as Markdown."""

import re
from collections.abc import Iterator

from crosstail.report.document.model import Block, Chart, Code, Document, Gallery, Heading, Items, Table, Text


def render(document: Document) -> str:
    """The whole document; charts and images become their text alternatives."""
    parts = [f"# {escape(document.title)}"]
    for block in document.blocks:
        parts += filter(None, _block(block))
    return "\n\n".join(parts) + "\n"


def _block(block: Block) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"## {escape(text)}"
        case Text(text):
            yield escape(text)
        case Code(text):
            fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
            yield f"{fence}sh\n{text}\n{fence}"
        case Items(items):
            yield "\n".join(
                "- "
                + ("**Problem:** " if item.problem else "")
                + escape(f"{item.text} {item.detail}" if item.detail else item.text)
                for item in items
            )
        case Table():
            yield f"## {escape(block.title)}" if block.title else ""
            yield table(block) if block.rows else ""
            yield escape(block.note)
        case Chart():
            yield f"## {escape(block.title)}" if block.title else ""
            yield escape(f"{block.alternative}. {block.note}" if block.note else f"{block.alternative}.")
        case Gallery(caption, pictures):
            yield "\n".join([f"- {escape(caption)}", *(f"  - {escape(picture.alternative)}" for picture in pictures)])


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
    """Escape everything that Markdown or HTML would interpret.

    >>> print(escape("<b>a_b &amp; [c](d)"))
    \\<b\\>a\\_b \\&amp; \\[c\\](d)
    """
    return re.sub(r"([\\|*_`<>\[\]&~$])", r"\\\1", " ".join(text.splitlines()))
