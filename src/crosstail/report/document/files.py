"""Charts and tables as files of their own, to use in a paper or on slides."""

from dataclasses import replace
from pathlib import Path

import altair as alt

from crosstail.report.document import html, latex, markdown
from crosstail.report.document.model import Chart, Document, Table

FORMATS = ("svg", "png", "pdf")


def save_chart(chart: Chart, path: Path) -> None:
    """One chart with its title, as an offline .html page, or as .png, .svg or .pdf."""
    if path.suffix == ".html":
        html.save(Document(chart.title, [replace(chart, title="")]), path)
    elif path.suffix.removeprefix(".") in FORMATS:
        drawing = chart.drawing.copy(deep=False)
        if getattr(drawing, "width", None) == "container":
            drawing.width = 560
        drawing.title = alt.TitleParams(_lines(chart.title), anchor="start")
        with alt.data_transformers.disable_max_rows():  # 150 pairs have 22,500 distances
            drawing.save(str(path), scale_factor=2.0 if path.suffix == ".png" else 1.0)
    else:
        raise ValueError(f"cannot draw to {path}: expected a name that ends in .html, .png, .svg or .pdf")


def save_table(table: Table, folder: Path) -> None:
    """NAME.csv with the unrounded numbers, NAME.md and NAME.tex."""
    assert table.name and table.numbers is not None
    folder.mkdir(parents=True, exist_ok=True)
    table.numbers.to_csv(folder / f"{table.name}.csv", index=False)
    (folder / f"{table.name}.md").write_text(markdown.table(table) + "\n", encoding="utf-8")
    (folder / f"{table.name}.tex").write_text(latex.table(table) + "\n", encoding="utf-8")


def _lines(text: str, width: int = 80) -> list[str]:
    """Wrap at spaces, but not at non-breaking ones, as textwrap does."""
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return lines
