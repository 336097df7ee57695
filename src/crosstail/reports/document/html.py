"""Documents as one offline HTML page, with interactive charts and no request to any server."""

import base64
import hashlib
import io
import json
import re
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Any

import vl_convert
from jinja2 import Environment, PackageLoader, StrictUndefined, Template
from markupsafe import Markup, escape
from PIL import Image

from crosstail.cache import cache_folder, write_atomically
from crosstail.reports.document.model import CODE, Block, Chart, Document, Heading, Picture, Table
from crosstail.storage import write_whole


def render(document: Document) -> str:
    """The page as text."""
    blocks = [(_kind_of(block), block) for block in document.blocks]
    draws = any(isinstance(block, Chart) for block in document.blocks)
    contents = _contents(document)
    about = {"title": document.title, "contents": contents, "addresses": list(contents)}
    return template("page.html.jinja").render(**about, blocks=blocks, draws=draws)


def save(document: Document, path: Path) -> None:
    """Write the page, whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, render(document).encode())


@cache
def template(name: str) -> Template:
    """A page of this package, which escapes what it shows."""
    loader = PackageLoader("crosstail.reports", "document")
    environment = Environment(loader=loader, autoescape=True, undefined=StrictUndefined)
    environment.trim_blocks = environment.lstrip_blocks = True
    for function in (_classes, _kind_of, _marked, _prose, _shade, _specification, _thumbnail, _vega):
        environment.globals[function.__name__.lstrip("_")] = function
    return environment.get_template(name)


def _kind_of(block: Block) -> str:
    return type(block).__name__


def _contents(document: Document) -> dict[str, Heading]:
    """The headings by their addresses within the page."""
    found: dict[str, Heading] = {}
    for block in document.blocks:
        if isinstance(block, Heading):
            address = re.sub("[^a-z0-9]+", "-", block.text.lower()).strip("-") or "part"
            found[f"{address}-{len(found)}" if address in found else address] = block
    return found


def _prose(text: str) -> Markup:
    """Plain text with code between backticks."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))


def _classes(table: Table) -> list[str]:
    """How the cells of each column are set; the first is left-aligned in any case."""
    last = len(table.header) - 1
    return [
        "w prose" if table.words_last and j == last else "w" * (words and j > 0) for j, words in enumerate(table.words)
    ]


def _marked(*classes: str) -> Markup:
    names = " ".join(filter(None, classes))
    return Markup(' class="{}"').format(names) if names else Markup()


def _shade(table: Table, i: int, j: int) -> Markup | str:
    shade = table.shades.get((i, j))
    if shade is None:
        return ""
    alarming = shade != shade
    colour = "#b84a00" if alarming else f"color-mix(in srgb, #08519c {round(100 * shade)}%, #deebf7)"
    ink = "white" if alarming or shade > 0.6 else "black"
    return Markup(' style="background: {}; color: {}"').format(colour, ink)


def _specification(chart: Chart) -> Markup:
    """Vega-Lite JSON for a script element."""
    # Vega replaces the element's label by the description.
    return data(chart.drawing.to_dict() | {"description": chart.alternative})


def data(value: Any) -> Markup:
    """JSON for a script element, which "</script" or "<!--" in a name would end early."""
    return Markup(json.dumps(value, separators=(",", ":")).replace("<", "\\u003c"))


def _thumbnail(picture: Picture, side: int) -> str:
    image, buffer = Image.fromarray(picture.pixels), io.BytesIO()
    image.thumbnail((side, side))
    image.save(buffer, "JPEG", quality=85)
    return f"data:image/jpeg;base64,{base64.b64encode(buffer.getvalue()).decode()}"


@cache
def _vega() -> Markup:
    """Vega with its dependencies as one script. Bundling takes two seconds, so it is cached, after its checksum."""
    kept = cache_folder() / f"vega-{version('vl-convert-python')}.js"
    with suppress(OSError):
        checksum, _, script = kept.read_bytes().partition(b"\n")
        if checksum == _checksum(script):
            return Markup(script.decode())
    made: str = vl_convert.javascript_bundle("window.vegaEmbed = vegaEmbed").replace("</script", "<\\/script")
    script = made.encode()
    write_atomically(kept, lambda path: path.write_bytes(_checksum(script) + b"\n" + script))
    return Markup(made)


def _checksum(script: bytes) -> bytes:
    return hashlib.sha256(script).hexdigest().encode()
