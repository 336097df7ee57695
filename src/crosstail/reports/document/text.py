"""Documents as text: one walk over the blocks, for any markup."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from crosstail.reports.document.model import Block, Cards, Document, Gallery

CODE = re.compile(r"(?<![\w`])`([^`\n]+)`(?![\w`])")
"""Code in prose; a backtick within a name is not the start of any."""

Markup = Mapping[type, Callable[[Any], str]]
"""How each kind of block is written, and under `Document` its title."""


def render(document: Document, markup: Markup) -> str:
    """The whole document; images become their text alternatives."""
    blocks = map(plain, document.blocks)
    return "\n\n".join(filter(None, (markup[type(block)](block) for block in (document, *blocks)))) + "\n"


def plain(block: Block) -> Block:
    """The block, or its fallback where neither images nor cards can be shown."""
    if isinstance(block, Cards):
        return block.table
    return block.alternatives if isinstance(block, Gallery) else block
