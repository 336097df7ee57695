"""crosstail report: what many runs found, as tables, figures and one page."""

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail.cli._progress import progress_bar


def report(
    folders: Annotated[list[Path], typer.Argument(help="Runs, sweeps, or folders that hold such.")],
    out: Annotated[Path, typer.Option(help="Folder for index.html, tables/ and figures/.")] = Path("report"),
    baseline: Annotated[str, typer.Option(help="The method that gains are over.")] = "erm",
    graphs: Annotated[
        list[Path] | None, typer.Option(help="A run to draw the graph and feature distances of; repeatable.")
    ] = None,
    trust: Annotated[bool, typer.Option("--trust", help="Run the algorithm file that a run brings along.")] = False,
    figures: Annotated[bool, typer.Option("--figures/--page-only", help="Also write each figure as a file.")] = True,
) -> None:
    """Make one offline page, tables (CSV, Markdown, LaTeX) and figures (SVG, PNG, PDF) from finished runs.

    Example: [b]crosstail report sweep --out report[/], then open report/index.html in a browser.
    """
    from crosstail.report.compare.page import write_report
    from crosstail.report.compare.read_runs import read_runs

    runs = read_runs(folders)
    seen = []
    if graphs:
        from crosstail.report.compare.feature_charts import see

        with progress_bar(Console(stderr=True)) as progress:
            seen = [see(run, trust, progress) for run in graphs]
    page = write_report(out, runs, baseline, seen, files=figures)
    console = Console(highlight=False, markup=False)
    console.print(f"{len(runs.table):,} finished runs, {len(runs.skipped):,} folders left out", soft_wrap=True)
    for path, why in runs.skipped[:5]:
        console.print(f"left out: {path}: {why}", soft_wrap=True)
    if baseline not in set(runs.chosen["method"]):
        known = ", ".join(dict.fromkeys(runs.chosen["method"]))
        console.print(f"note: no run of the baseline {baseline!r}, so no gains; --baseline names one of {known}")
    console.print(f"Next: open {page}", soft_wrap=True)
