"""Documents as Markdown."""

import re
from collections.abc import Sequence

from crosstail.report.document import text
from crosstail.report.document.model import Chart, Document, Item, Table
from crosstail.report.wording import sentence


def render(document: Document) -> str:
    """The whole document; charts and images become their text alternatives."""
    return text.render(document, _MARKUP)


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


def _heading(text: str) -> str:
    return f"## {escape(text)}"


def _code(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}sh\n{text}\n{fence}"


def _items(items: Sequence[Item]) -> str:
    marks = ["- **Problem:** " if item.problem else "- " for item in items]
    return "\n".join(
        mark + escape(f"{item.text} {item.detail}".strip()) for mark, item in zip(marks, items, strict=True)
    )


def _titled(block: Table | Chart, body: str) -> str:
    return "\n\n".join(filter(None, (block.title and _heading(block.title), body, escape(block.note))))


_MARKUP = text.Markup(
    title=lambda text: f"# {escape(text)}",
    heading=_heading,
    text=escape,
    code=_code,
    items=_items,
    table=lambda block: _titled(block, table(block) if block.rows else ""),
    chart=lambda block: _titled(block, escape(sentence(block.alternative))),
)
