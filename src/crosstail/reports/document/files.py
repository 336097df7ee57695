"""Charts and tables as files of their own, to use in a paper or on slides."""

from pathlib import Path
from textwrap import wrap

import vl_convert

from crosstail.reports.document import latex, markdown
from crosstail.reports.document.model import Chart, Table
from crosstail.reports.vega_lite import Drawing
from crosstail.storage import write_whole

FORMATS = ("svg", "png", "pdf")


def save_chart(chart: Chart, path: Path) -> None:
    """One chart with its title, as .png, .svg or .pdf."""
    title = {"text": wrap(chart.title, 80, break_on_hyphens=False), "anchor": "start"}
    save_drawing(chart.drawing.having(title=title, **{"width": 560} if chart.fits else {}), path)


def save_drawing(drawing: Drawing, path: Path) -> None:
    """A drawing alone, as .png, .svg or .pdf."""
    specification = drawing.to_dict()
    match path.suffix:
        case ".png":
            content = vl_convert.vegalite_to_png(specification, scale=2.0)
        case ".pdf":
            content = vl_convert.vegalite_to_pdf(specification)
        case ".svg":
            content = vl_convert.vegalite_to_svg(specification).encode()
        case _:
            raise ValueError(f"cannot draw to {path}: expected a name that ends in .html, .png, .svg or .pdf")
    write_whole(path, content)


def save_table(table: Table, folder: Path) -> None:
    """NAME.csv with the unrounded numbers, NAME.md and NAME.tex."""
    assert table.name and table.numbers is not None
    folder.mkdir(parents=True, exist_ok=True)
    texts = {"csv": table.numbers.to_csv(index=False), "md": markdown.table(table), "tex": latex.table(table)}
    for suffix, text in texts.items():
        write_whole(folder / f"{table.name}.{suffix}", f"{text.removesuffix(chr(10))}\n".encode())


def save_floating(table: Table, folder: Path) -> None:
    """NAME.tex with caption and label, for one column of a paper."""
    folder.mkdir(parents=True, exist_ok=True)
    write_whole(folder / f"{table.name}.tex", f"{latex.floating(table)}\n".encode())
