"""Charts and tables as files of their own, to use in a paper or on slides."""

from pathlib import Path
from textwrap import wrap

import altair as alt

from crosstail.report.document import latex, markdown
from crosstail.report.document.model import Chart, Table
from crosstail.storage import naming, replacing, write_whole

FORMATS = ("svg", "png", "pdf")


def save_chart(chart: Chart, path: Path) -> None:
    """One chart with its title, as .png, .svg or .pdf."""
    if path.suffix.removeprefix(".") in FORMATS:
        drawing = chart.drawing.copy(deep=False)
        if getattr(drawing, "width", None) == "container":
            drawing.width = 560
        drawing.title = alt.TitleParams(wrap(chart.title, 80, break_on_hyphens=False), anchor="start")
        large = alt.data_transformers.disable_max_rows()  # 150 pairs have 22,500 distances
        with large, replacing(path) as partial, naming(path):
            drawing.save(str(partial), scale_factor=2.0 if path.suffix == ".png" else 1.0)
    else:
        raise ValueError(f"cannot draw to {path}: expected a name that ends in .html, .png, .svg or .pdf")


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
