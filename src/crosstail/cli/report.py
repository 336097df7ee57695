"""crosstail report: tables, charts and one page from many runs."""

from pathlib import Path
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console

from crosstail import metrics
from crosstail.cli._next import say_all
from crosstail.cli._progress import progress_bar
from crosstail.cli._verb import described, import_torch

METRIC = (
    f"Metric shown in all tables: {', '.join(metrics.names())}, or a file such as ./mine.py; all but accuracy require "
    "stored probabilities."
)


@described
def report(
    folders: Annotated[list[Path], Parameter(name="FOLDERS")],
    /,
    *,
    out: Path = Path("report"),
    baseline: str | None = None,
    graphs: tuple[Path, ...] = (),
    trust: bool = False,
    metric: Annotated[str, Parameter(help=METRIC)] = metrics.DEFAULT,
    spread: Literal["sd", "se"] | None = None,
    published: bool = False,
    charts: Annotated[bool, Parameter(negative="--page-only")] = True,
) -> None:
    """Example: `crosstail report sweep --out report`, then open report/index.html in a browser.

    Args:
        graphs: A run whose graph and feature distances to draw; repeatable."""
    import_torch()

    from crosstail.workflows.report import report

    how: dict[str, Any] = {"baseline": baseline, "graphs": graphs, "trust": trust, "metric": metric, "charts": charts}
    how |= {"spread": spread, "published": published}
    with progress_bar(Console(stderr=True)) as progress:
        found = report(folders, out=out, **how, progress=progress)
    console, runs = Console(highlight=False, markup=False), found.runs
    console.print(f"{len(runs.table):,} finished runs, {len(runs.skipped):,} folders skipped", soft_wrap=True)
    say_all(console, "skipped", (f"{path}: {why}" for path, why in runs.skipped[:5]))
    say_all(console, "left out", found.left_out[:5])
    for race in runs.races:
        console.print(f"race on {race.dataset}: {race.recommendation}", soft_wrap=True)
    say_all(console, "note", found.notes)
    console.print(f"Next: open {found.page}", soft_wrap=True)
