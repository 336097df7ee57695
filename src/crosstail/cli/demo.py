"""crosstail demo: a first result without any data, in a few minutes."""

import json
import time
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from crosstail.cli._imports import import_torch
from crosstail.cli._progress import progress_bar
from crosstail.workflows._output import refuse_foreign

if TYPE_CHECKING:
    from crosstail.training import RunSpec

STEPS = 300
METHODS = ("erm", "erm:retrain", "bsoftmax", "boda:retrain", "frozen:blend")


def demo(*, out: Path = Path("demo"), seeds: Annotated[int, Parameter(validator=Number(gte=1))] = 3) -> None:
    """Compare ERM, CRT, balanced softmax, BoDA and the default on synthetic digits from three domains.

    Example: `crosstail demo --out demo`, then open demo/report.html in a browser.

    Args:
        out: Folder for the runs and report.html.
        seeds: Runs per method.
    """
    import_torch()

    from crosstail.reports.compare.demo_page import metrics_table, verdict, write_page
    from crosstail.reports.compare.read_runs import read_runs
    from crosstail.reports.compare.tables import summary_table
    from crosstail.reports.document import terminal
    from crosstail.training.fit import train_run

    specs = {(method, seed): spec(method, seed) for method in METHODS for seed in range(seeds)}
    folders = {key: out / "runs" / run.key for key, run in specs.items()}
    refuse_foreign(out, own=any(folder.exists() for folder in folders.values()))
    began = time.monotonic()
    console = Console(highlight=False, markup=False)
    console.print("Digits from three domains with long tails in opposite directions; frozen ImageNet features.")
    for (method, seed), run in specs.items():
        with progress_bar(console, f"{method}, seed {seed}:") as progress:
            train_run(run, folders[method, seed], progress=progress)
    runs = read_runs(list(folders.values()))
    summary = summary_table(runs.chosen)
    terminal.show([metrics_table(summary, METHODS)], console)
    console.print(verdict(summary))
    write_page(out / "report.html", runs, [folders["erm", 0], folders["boda:retrain", 0]])
    console.print(f"Took {time.monotonic() - began:.0f} s. Open {out / 'report.html'} in a browser.")


def spec(method: str, seed: int) -> "RunSpec":
    """The run of a method: all share data, backbone, steps and number of search trials."""
    from crosstail.training.spec import RunSpec, split_method

    algorithm, second_stage = split_method(method)
    tuned = json.loads((resources.files("crosstail.cli") / "demo_hparams.json").read_text(encoding="utf-8"))
    shared: dict[str, Any] = {"dataset": "digits", "backbone": "efficientnet_lite0", "freeze": True, "steps": STEPS}
    return RunSpec(**shared, algorithm=algorithm, second_stage=second_stage, hparams=tuned.get(method, {}), seed=seed)
