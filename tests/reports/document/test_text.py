import numpy as np
import pandas as pd
import pytest
from rich.console import Console

from crosstail.reports.document import markdown, terminal
from crosstail.reports.document.model import (
    Card,
    Cards,
    Chart,
    Code,
    Document,
    Gallery,
    Heading,
    Item,
    Items,
    Picture,
    Table,
    Text,
)
from crosstail.reports.vega_lite import draw

DOCUMENT = Document(
    "Cats & dogs",
    [
        Text("A_paragraph of `a_b`."),
        Cards([Card("Worst pair", "5 %", "sketch / cat", "bad")]),
        Heading("The [b]data[/b]"),
        Items([Item("All is well."), Item("A file is broken.", "a.png\x1b[2J", problem=True)]),
        Table(header=["pair", "%"], rows=[["sketch / cat", "5.0"]], title="Pairs", note="Of 10.", emphasised={(0, 1)}),
        Chart("points", "A chart", draw(pd.DataFrame({"x": [1]})).mark("point"), "Points: one", "Small."),
        Gallery("sketch", [Picture(np.zeros((2, 2, 3), np.uint8), "dog", "sketch / cat as dog: a.png")]),
        Code("crosstail fit `a`"),
    ],
)


def shown(blocks, width=80):
    console = Console(width=width, force_terminal=False)
    with console.capture() as capture:
        terminal.show(blocks, console)
    return capture.get()


def test_markdown():
    assert markdown.render(DOCUMENT).split("\n\n") == [
        "# Cats \\& dogs",
        "A\\_paragraph of `a_b`.",
        "|  |  |  |\n|---|---|---|\n| Worst pair | 5 % | sketch / cat |",
        "## The \\[b\\]data\\[/b\\]",
        "- All is well.\n- **Problem:** A file is broken. a.png\x1b\\[2J",
        "### Pairs",
        "| pair | % |\n|---|---|\n| sketch / cat | **5.0** |",
        "Of 10.",
        "### A chart",
        "Points: one.",
        "Small.",
        "- sketch: sketch / cat as dog: a.png",
        "```sh\ncrosstail fit `a`\n```\n",
    ]


def test_code_cannot_leave_its_fence():
    assert markdown.render(Document("t", [Code("a ``` b")])).endswith("````sh\na ``` b\n````\n")


def test_the_terminal_shows_names_as_they_are_but_no_control_characters():
    assert [line.rstrip() for line in shown(DOCUMENT.blocks).splitlines()] == [
        "A_paragraph of `a_b`.",
        "Worst pair 5 % sketch / cat",
        "",
        "The [b]data[/b]",
        "- All is well.",
        "! A file is broken.",
        "  a.png\ufffd[2J",
        "",
        "Pairs",
        "pair           %",
        "sketch / cat 5.0",
        "Of 10.",
        "",
        "A chart",
        "Points: one",
        "Small.",
        "- sketch: sketch / cat as dog: a.png",
        "  crosstail fit `a`",
    ]


def test_a_table_in_the_terminal_wraps_names_and_prose_and_keeps_numbers_whole():
    table = Table(
        header=["name", *["accuracy"] * 3, "why"],
        rows=[["an algorithm " * 5, "12.3 ± 4.5", "12.3 ± 4.5", "12.3 ± 4.5", "because of this " * 6]],
        words_last=True,
    )
    lines = shown([table]).splitlines()
    assert max(map(len, lines)) <= 80
    assert sum(line.count("12.3 ± 4.5") for line in lines) == 3
    assert sum(line.count("because") for line in lines) == 6 and sum(line.count("algorithm") for line in lines) == 5


@pytest.mark.parametrize("shade", [0.0, 0.5, 1.0, float("nan")])
def test_shaded_cells_stay_readable(shade):
    console = Console(width=80, force_terminal=True, color_system="truecolor")
    with console.capture() as capture:
        terminal.show([Table(header=["", "n"], rows=[["cat", "17"]], shades={(0, 1): shade})], console)
    assert "\x1b[" in capture.get() and "17" in capture.get()
