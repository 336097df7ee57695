"""The page is whole, offline, and shows names from the data as text."""

import base64
import io
import re

import numpy as np
import pandas as pd
from PIL import Image

from crosstail.reports.document import html
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

EVIL = "<script>alert(1)</script>"


def points(name: str) -> Chart:
    return Chart("points", name, draw(pd.DataFrame({"x": [name]})).mark("point").encode(x="x:N"), name, name)


def test_names_from_the_data_are_shown_as_text():
    picture = Picture(np.zeros((4, 4, 3), np.uint8), EVIL, EVIL)
    blocks = [
        Heading(EVIL),
        Text(EVIL),
        Code(EVIL),
        Items([Item(EVIL, EVIL, problem=True)]),
        Table(header=[EVIL], rows=[[EVIL]], title=EVIL, note=EVIL),
        Gallery(EVIL, [picture]),
        points(EVIL),
    ]
    page = html.render(Document(EVIL, blocks))
    assert EVIL not in page
    # Title twice; heading, text, code; text and detail of the item; title, header, cell, note of the table; caption,
    # both alternatives and the label of the picture; title, alternative and note of the chart.
    assert page.count("&lt;script&gt;alert(1)&lt;/script&gt;") == 2 + 3 + 2 + 4 + 4 + 3


def test_nothing_is_loaded_from_elsewhere():
    page = html.render(Document("offline", [points("a")]))
    assert not re.search(r"""(src|href)\s*=\s*["']?https?:""", page)
    assert "vegaEmbed" in page
    assert page.count('aria-label="a"') == 1


def test_a_page_without_charts_does_not_carry_vega():
    assert len(html.render(Document("words", [Text("a")]))) < 15_000


def test_cells_are_emphasised_faint_and_shaded():
    table = Table(
        header=["a", "b"],
        rows=[["1", "2"], ["3", "4"], *[["5", "6"]] * 7],
        name="cells",
        emphasised={(0, 1)},
        faint={1},
        shades={(0, 0): 1.0, (1, 0): float("nan")},
        words_last=True,
    )
    page = html.render(Document("t", [table]))
    assert '<td class="w prose best">2</td>' in page and '<tr class="dim">' in page
    assert re.findall(r'<td style="background: ([^;]+); color: (\w+)">(.)<', page) == [
        ("color-mix(in srgb, #08519c 100%, #deebf7)", "white", "1"),
        ("#b84a00", "white", "3"),
    ]
    assert "data-rows>" in page


def test_a_table_with_an_empty_header_has_none():
    assert "<th" not in html.render(Document("t", [Table(header=["", ""], rows=[["a", "1"]])])).partition("<body>")[2]


def test_a_thumbnail_is_small():
    noise = np.random.default_rng(0).integers(0, 256, (500, 300, 3)).astype(np.uint8)
    address = html._thumbnail(Picture(noise, "", ""), 64)
    image = Image.open(io.BytesIO(base64.b64decode(address.partition(",")[2])))
    assert max(image.size) == 64 and len(address) < 8000


def test_contents_link_to_every_heading():
    headings = [Heading("Where does it fail?"), Heading("Pictures", 3), Heading("Pictures", 3)]
    page = html.render(Document("t", headings))
    links, ids = (re.findall(pattern, page) for pattern in (r'<a href="#([^"]+)"', r'<h[23] id="([^"]+)"'))
    assert links == ids and len(set(ids)) == 3
    assert "<nav" not in html.render(Document("t", headings[:1]))  # one section needs no contents


def test_backticks_are_code_in_prose_but_not_within_names():
    page = html.render(Document("t", [Text("run `a <b>` on x`y`z"), Cards([Card("a", "1 %", "`b`", "bad")])]))
    assert "<p>run <code>a &lt;b&gt;</code> on x`y`z</p>" in page
    assert (
        '<div class="card bad"><span class="label">a</span><strong>1 %</strong><span><code>b</code></span></div>'
        in page
    )


def test_columns_of_words_are_left_aligned():
    rows = [["1", "12.3 to 15.0", "few", "3 of 10", "–"], ["2", "–", "many", "9 of 10", "+1.2 ± 0.3"]]
    page = html.render(Document("t", [Table(header=list("abcde"), rows=rows)]))
    assert re.findall(r'<td class="w">(\w+)</td>', page) == ["few", "many"]
