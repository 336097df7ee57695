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
METHODS = {
    "ERM": ("erm", False),
    "ERM, decoupled": ("erm", True),
    "BoDA": ("boda", False),
    "BoDA, decoupled": ("boda", True),
}


def demo(
    out: Annotated[Path, typer.Option(help="Folder for the runs and report.html.")] = Path("demo"),
    seeds: Annotated[int, typer.Option(min=1, help="Runs per method.")] = 3,
) -> None:
    """Train ERM and BoDA on made digits of three domains and show what differs.

    Example: [b]crosstail demo --out demo[/], then open demo/report.html in a browser.
    """
    from crosstail.report.demo import write_page
    from crosstail.report.tables import summary_table
    from crosstail.training import fit

    began = time.monotonic()
    console = Console()
    console.print("Digits of three domains, with long tails in opposite directions; frozen ImageNet features.")
    specs = {name: [spec(name, seed) for seed in range(seeds)] for name in METHODS}
    runs: dict[str, list[dict[str, Any]]] = {}
    folders: dict[str, list[Path]] = {}
    for name, plans in specs.items():
        folders[name] = [out / "runs" / plan.key for plan in plans]
        runs[name] = []
        for plan, folder in zip(plans, folders[name], strict=True):
            with progress_bar(console, f"{name}, seed {plan.seed}:") as progress:
                runs[name].append(fit(plan, folder, progress))
    table = summary_table(runs, baseline="ERM")
    console.print(terminal_table(table))
    write_page(out / "report.html", runs, folders, table)
    console.print(
        f"Mean ± standard deviation over {seeds} seeds, gain over ERM in brackets; accuracies in %.\n"
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
    """Metrics down, methods across, within 80 columns."""
    from crosstail.report.tables import METRICS

    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("")
    for method in METHODS:
        table.add_column(method, justify="right", no_wrap=True)
    cells = {(row.method, row.metric): cell(row) for row in summary.itertuples()}
    for metric in METRICS:
        table.add_row(metric, *(cells[method, metric] for method in METHODS))
    return table


def cell(row: Any) -> str:
    """Mean ± deviation (gain)."""
    if row.mean != row.mean:
        return "–"
    spread = "" if row.std != row.std else f"±{row.std:.1f}"
    gain = "" if row.method == "ERM" else f" ({row.gain:+.1f})"
    return f"{row.mean:.1f}{spread}{gain}"
