"""crosstail report: tables, charts and one page from many runs."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from crosstail import metrics
from crosstail.cli._imports import import_torch
from crosstail.cli._parameters import Trust
from crosstail.cli._progress import progress_bar

METRIC = (
    f"Metric shown in all tables: {', '.join(metrics.names())}, or a file such as ./mine.py; all but accuracy require "
    "stored probabilities."
)


def report(
    folders: Annotated[list[Path], Parameter(name="FOLDERS")],
    /,
    *,
    out: Path = Path("report"),
    baseline: str | None = None,
    graphs: tuple[Path, ...] = (),
    trust: Trust = False,
    metric: Annotated[str, Parameter(help=METRIC)] = metrics.DEFAULT,
    charts: Annotated[bool, Parameter(negative="--page-only")] = True,
) -> None:
    """Write one offline page, tables (CSV, Markdown, LaTeX) and charts (SVG, PNG, PDF) from finished runs.

    Example: `crosstail report sweep --out report`, then open report/index.html in a browser.

    Args:
        folders: Runs, sweeps, or folders that contain them.
        out: Folder for index.html, tables/ and charts/.
        baseline: Baseline for gains and tests; default: erm for gains, the best method for tests.
        graphs: A run whose graph and feature distances to draw; repeatable.
        charts: Also write each chart to a file.
    """
    import_torch()

    from crosstail.workflows.report import report

    how: dict[str, Any] = {"baseline": baseline, "graphs": graphs, "trust": trust, "metric": metric, "charts": charts}
    with progress_bar(Console(stderr=True)) as progress:
        found = report(folders, out=out, **how, progress=progress)
    console, runs = Console(highlight=False, markup=False), found.runs
    console.print(f"{len(runs.table):,} finished runs, {len(runs.skipped):,} folders skipped", soft_wrap=True)
    for path, why in runs.skipped[:5]:
        console.print(f"skipped: {path}: {why}", soft_wrap=True)
    for why in found.left_out[:5]:
        console.print(f"left out: {why}", soft_wrap=True)
    for race in runs.races:
        console.print(f"race on {race.dataset}: {race.recommendation}", soft_wrap=True)
    for note in found.notes:
        console.print(f"note: {note}")
    console.print(f"Next: open {found.page}", soft_wrap=True)
