"""crosstail demo: a first result from nothing, in a few minutes."""

import json
import time
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from crosstail.cli._progress import progress_bar

STEPS = 300
METHODS = {  # as a report calls them
    "erm": ("erm", False),
    "erm, decoupled": ("erm", True),
    "boda": ("boda", False),
    "boda, decoupled": ("boda", True),
}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and report.html.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Runs per method.")] = 3,
) -> None:
    """Train ERM and BoDA on made digits of three domains and show what differs.

    Example: [b]crosstail demo --out demo[/], then open demo/report.html in a browser.
    """
    from crosstail.report.compare.demo_page import write_page
    from crosstail.report.compare.read_runs import read_runs
    from crosstail.report.compare.tables import summary_table
    from crosstail.training.fit import fit

    began = time.monotonic()
    console = Console()
    console.print("Digits of three domains, with long tails in opposite directions; frozen ImageNet features.")
    plans = {(name, seed): spec(name, seed) for name in METHODS for seed in range(seeds)}
    folders = {key: out / "runs" / plan.key for key, plan in plans.items()}
    for (name, seed), plan in plans.items():
        with progress_bar(console, f"{name}, seed {seed}:") as progress:
            fit(plan, folders[name, seed], progress)
    runs = read_runs(list(folders.values()))
    console.print(terminal_table(summary_table(runs.chosen)))
    write_page(out / "report.html", runs, [folders["erm", 0], folders["boda", 0]])
    console.print(
        f"Mean ± standard deviation over {seeds} seeds, gain over erm in brackets; accuracies in %.\n"
        f"Took {time.monotonic() - began:.0f} s. Open [b]{out / 'report.html'}[/] in a browser.",
        highlight=False,
    )


def spec(method: str, seed: int) -> Any:
    """The run of a method: same data, backbone, steps and number of search trials for all."""
    from crosstail.training import RunSpec

    algorithm, decouple = METHODS[method]
    tuned = json.loads((resources.files("crosstail.cli") / "demo_hparams.json").read_text(encoding="utf-8"))
    return RunSpec(
        dataset="digits",
        algorithm=algorithm,
        decouple=decouple,
        backbone="efficientnet_lite0",
        freeze=True,
        hparams=tuned[method],
        steps=STEPS,
        seed=seed,
    )


def terminal_table(summary: Any) -> Table:
    """Figures down, methods across, within 80 columns."""
    from crosstail.report.compare.tables import FIGURES

    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("")
    for method in METHODS:
        table.add_column(method, justify="right", no_wrap=True)
    known = {(row.method, row.figure): row for row in summary[summary["kind"] == "figure"].itertuples()}
    for figure in FIGURES:
        table.add_row(figure, *(cell(known[method, figure], known["erm", figure].mean) for method in METHODS))
    return table


def cell(row: Any, base: float) -> str:
    """Mean ± deviation (gain)."""
    spread = "" if row.std != row.std else f"±{row.std:.1f}"
    gain = "" if row.method == "erm" else f" ({row.mean - base:+.1f})"
    return f"{row.mean:.1f}{spread}{gain}"
