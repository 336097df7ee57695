"""One offline page: headings, sentences, tables, pictures and interactive charts, with no request to anywhere."""

import base64
import hashlib
import io
import json
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from html import escape
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import numpy as np
import vl_convert
from numpy.typing import NDArray
from PIL import Image

from crosstail.cache import cache_folder, write_atomically

Chart = alt.Chart | alt.LayerChart | alt.FacetChart | alt.ConcatChart | alt.HConcatChart | alt.VConcatChart
THUMBNAIL = 64

_STYLE = """
:root { color-scheme: light dark; --ink: #1c1c1e; --dim: #5d5d66; --line: #d8d8de; --paper: #fff }
@media (prefers-color-scheme: dark) { :root { --ink: #ececf0; --dim: #a4a4ae; --line: #3a3a42; --paper: #17171a } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 0 auto;
  padding: 1.5rem 1rem 4rem; max-width: 1080px }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0 } h2 { font-size: 1.2rem; margin: 2.5rem 0 .3rem }
p { max-width: 46rem; margin: .4rem 0 .8rem } .dim { color: var(--dim) } .wide { overflow-x: auto }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: .92rem }
th, td { padding: .3rem .9rem .3rem 0; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line) }
th:first-child, td:first-child { position: sticky; left: 0; background: var(--paper) }
th:first-child, td:first-child, .words :last-child { text-align: left } td.best { font-weight: 700 }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font-size: .85rem; border: 1px solid var(--line); padding: .6rem }
h1, p { overflow-wrap: anywhere } .fit { display: block !important; width: 100%; max-width: 46rem }
figure { margin: .5rem 0 } figcaption { color: var(--dim); font-size: .9rem } img { image-rendering: pixelated;
  max-width: 100%; display: block }
.find { color: var(--dim); font-size: .9rem } input, button, select { font: inherit; font-size: .85rem; color: inherit;
  background: var(--paper); border: 1px solid var(--line); border-radius: 4px; padding: .15rem .5rem }
.save { margin: .1rem 0 1rem } button { cursor: pointer } :focus-visible { outline: 2px solid #0072B2 }
.gallery { display: inline-block; vertical-align: top; margin: .2rem 1.5rem .8rem 0 } .gallery div { display: flex;
  flex-wrap: wrap; gap: .5rem } .gallery span { width: 74px; overflow-wrap: anywhere; font-size: .75rem;
  line-height: 1.2 } .gallery img { width: 64px; height: 64px; object-fit: contain }
.vega-bindings { font-size: .9rem; margin: .3rem 0 }
@media (max-width: 480px) { th, td { padding-right: .5rem } table { font-size: .82rem } }
"""

_DRAW = """
const dark = matchMedia("(prefers-color-scheme: dark)").matches;
async function draw(place) {
  const spec = JSON.parse(document.getElementById(place.dataset.chart).textContent);
  const {view} = await vegaEmbed(place, spec, {theme: dark ? "dark" : undefined, actions: false,
    config: {background: "transparent", axis: {gridColor: dark ? "#35353d" : "#e4e4e9"}}});
  for (const button of place.parentElement.nextElementSibling.querySelectorAll("[data-save]"))
    button.onclick = async () => Object.assign(document.createElement("a"), {download: place.dataset.chart + "." +
      button.dataset.save, href: await view.toImageURL(button.dataset.save, 2)}).click();
}
// A chart is drawn when it comes near the window, so that a page with many opens at once.
const near = new IntersectionObserver(found => { for (const one of found) if (one.isIntersecting) {
  near.unobserve(one.target); draw(one.target); } }, {rootMargin: "600px"});
document.querySelectorAll("[data-chart]").forEach(place => near.observe(place));
for (const field of document.querySelectorAll("[data-rows]")) field.oninput = () => {
  const rows = [...field.parentElement.nextElementSibling.querySelectorAll("tr")].slice(1);
  for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(field.value.toLowerCase());
};
"""


class Picture(NamedTuple):
    """Pixels (H, W, 3), words under them, and words in their place."""

    pixels: NDArray[np.uint8]
    words: str
    alternative: str

    def thumbnail(self) -> str:
        """As an address that holds all of it, at most 64 pixels wide and high: a few kilobytes."""
        image, buffer = Image.fromarray(self.pixels), io.BytesIO()
        image.thumbnail((THUMBNAIL, THUMBNAIL))
        image.save(buffer, "JPEG", quality=85)
        return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


@dataclass
class Page:
    """Add blocks from top to bottom, then `save`."""

    title: str
    _body: list[str] = field(default_factory=list)
    _charts: int = 0

    def heading(self, text: str) -> None:
        """A section's title: what it shows."""
        self._body.append(f"<h2>{escape(text)}</h2>")

    def text(self, text: str, *, dim: bool = False) -> None:
        """A paragraph."""
        self._body.append(f'<p class="dim">{escape(text)}</p>' if dim else f"<p>{escape(text)}</p>")

    def code(self, text: str) -> None:
        """A line to copy."""
        self._body.append(f"<pre>{escape(text)}</pre>")

    def table(
        self,
        header: list[str],
        rows: list[list[str]],
        best: set[tuple[int, int]] | None = None,
        *,
        words_last: bool = False,
        search: bool = False,
    ) -> None:
        """A table; `best` names the (row, column) cells to emphasise; its last column may be words.

        With `search`, a field above it shows only the rows that hold what is typed.
        """
        head = "".join(f"<th>{escape(cell)}</th>" for cell in header)
        lines = []
        for i, row in enumerate(rows):
            openings = ['<td class="best">' if best and (i, j) in best else "<td>" for j in range(len(row))]
            cells = (opening + escape(cell) + "</td>" for opening, cell in zip(openings, row, strict=True))
            lines.append(f"<tr>{''.join(cells)}</tr>")
        table = '<table class="words">' if words_last else "<table>"
        field = '<label class="find">find <input type="search" data-rows></label>' if search else ""
        self._body.append(f'{field}<div class="wide">{table}<tr>{head}</tr>{"".join(lines)}</table></div>')

    def images(self, images: NDArray[np.uint8], caption: str, *, scale: int = 2) -> None:
        """A row of images (N, H, W, 3) with a caption, which is also the text alternative."""
        strip = Image.fromarray(np.concatenate(list(images), axis=1))
        buffer = io.BytesIO()
        strip.save(buffer, "PNG")
        data = base64.b64encode(buffer.getvalue()).decode()
        self._body.append(
            f'<figure><img alt="{escape(caption)}" width="{strip.width * scale}" src="data:image/png;base64,{data}">'
            f"<figcaption>{escape(caption)}</figcaption></figure>"
        )

    def gallery(self, caption: str, pictures: Sequence[Picture]) -> None:
        """Small pictures under a caption, each with its words; a mouse or a screen reader finds its alternative."""
        shown = "".join(
            f'<span><img alt="{escape(picture.alternative)}" title="{escape(picture.alternative)}" '
            f'src="{picture.thumbnail()}">{escape(picture.words)}</span>'
            for picture in pictures
        )
        text = escape(caption)
        self._body.append(f'<figure class="gallery"><figcaption>{text}</figcaption><div>{shown}</div></figure>')

    def chart(self, chart: Chart, alternative: str) -> None:
        """An interactive chart with a text alternative."""
        name = f"chart{self._charts}"
        self._charts += 1
        # "</script" or "<!--" in a name from the data would change where the script element ends.
        # Vega puts the description of a chart in the place of the label that is there before it is drawn.
        spec = json.dumps(chart.to_dict() | {"description": alternative}).replace("<", "\\u003c")
        style = "fit" if getattr(chart, "width", None) == "container" else ""
        label = escape(alternative)
        self._body.append(
            f'<div class="wide"><div class="{style}" data-chart="{name}" role="img" aria-label="{label}"></div></div>'
            f'<p class="save"><button data-save="svg">Save as SVG</button> <button data-save="png">PNG</button></p>'
            f'<script type="application/json" id="{name}">{spec}</script>'
        )

    def html(self) -> str:
        """The page as a text."""
        return (
            f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            f'<meta name="viewport" content="width=device-width, initial-scale=1"><link rel="icon" href="data:,">'
            f"<title>{escape(self.title)}</title><style>{_STYLE}</style></head><body><h1>{escape(self.title)}</h1>\n"
            + "\n".join(self._body)
            + f"\n<script>{_bundle()}</script>\n<script>{_DRAW}</script></body></html>\n"
        )

    def save(self, path: Path) -> None:
        """Write the page."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(self.html(), encoding="utf-8")


@cache
def _bundle() -> str:
    """Vega and what it needs, as one script; making it takes two seconds, so it is kept, with a checksum before it."""
    kept = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        checksum, _, script = kept.read_bytes().partition(b"\n")
        if checksum == _checksum(script):
            return script.decode()
    made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed").replace("</script", "<\\/script")
    script = made.encode()
    write_atomically(kept, lambda path: path.write_bytes(_checksum(script) + b"\n" + script))
    return made


def _checksum(script: bytes) -> bytes:
    return hashlib.sha256(script).hexdigest().encode()


def save_chart(chart: Chart, path: Path) -> None:
    """One chart as an offline .html page, or as .png, .svg or .pdf."""
    if path.suffix == ".html":
        title: Any = chart.title
        page = Page(title if isinstance(title, str) else "Crosstail")
        page.chart(chart, page.title)
        page.save(path)
    elif path.suffix in (".png", ".svg", ".pdf"):
        chart.save(str(path), scale_factor=2.0 if path.suffix == ".png" else 1.0)
    else:
        raise ValueError(f"cannot draw to {path}: expected a name that ends in .html, .png, .svg or .pdf")
