"""Docstrings as Markdown: examples become blocks of code, and `.. math::` a formula."""

import re
from typing import Any

import griffe

EXAMPLE = re.compile(r"(?:^>>> .*\n(?:(?!\s*$).*\n?)*)+", re.MULTILINE)
MATH = re.compile(r"^\.\. math:: (.*(?:\n[ ]+.*)*)", re.MULTILINE)


class Markdown(griffe.Extension):
    """Rewrites every docstring once."""

    def on_instance(self, *, obj: Any, **_: Any) -> None:
        """Called for each object with its docstring."""
        if obj.docstring:
            text = MATH.sub(lambda found: f"$$\n{found[1]}\n$$\n", obj.docstring.value)
            obj.docstring.value = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text + "\n")
