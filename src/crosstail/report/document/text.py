"""Documents as text: one walk over the blocks, for any markup."""

from collections.abc import Callable, Mapping
from typing import Any

from crosstail.report.document.model import Document, Gallery

Markup = Mapping[type, Callable[[Any], str]]
"""How each kind of block is written, and under `Document` its title."""


def render(document: Document, markup: Markup) -> str:
    """The whole document; images become their text alternatives."""
    blocks = [block.alternatives if isinstance(block, Gallery) else block for block in document.blocks]
    return "\n\n".join(filter(None, (markup[type(block)](block) for block in (document, *blocks)))) + "\n"
