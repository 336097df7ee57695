"""A first result without any data, in a few minutes."""

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from crosstail.progress import Progress, labelled, silent
from crosstail.reports.compare.demo_page import write_page
from crosstail.reports.compare.read_runs import read_runs
from crosstail.reports.compare.results import Results
from crosstail.training.fit import train_run
from crosstail.training.spec import RunSpec, split_method
from crosstail.workflows._output import refuse_foreign

STEPS = 300
METHODS = ("erm", "erm:retrain", "bsoftmax", "boda:retrain", "frozen:blend")


@dataclass(frozen=True, eq=False)
class Demo:
    """A demo that has ended."""

    page: Path
    results: Results
    """Every metric by method, and the tests of their differences."""


def demo(out: Path = Path("demo"), *, seeds: int = 3, progress: Progress = silent) -> Demo:
    """Compare ERM, CRT, balanced softmax, BoDA and the default on synthetic digits from three domains.

    Args:
        out: Folder for the runs and report.html.
        seeds: Runs per method.
        progress: Called as the work advances.
    """
    specs = {(method, seed): spec(method, seed) for method in METHODS for seed in range(seeds)}
    folders = {key: out / "runs" / run.key for key, run in specs.items()}
    refuse_foreign(out, own=any(folder.exists() for folder in folders.values()))
    for (method, seed), run in specs.items():
        train_run(run, folders[method, seed], progress=labelled(progress, f"{method}, seed {seed}"))
    results = Results(read_runs(list(folders.values())))
    write_page(out / "report.html", results, [folders["erm", 0], folders["boda:retrain", 0]])
    return Demo(out / "report.html", results)


def spec(method: str, seed: int) -> RunSpec:
    """The run of a method: all share data, backbone, steps and number of search trials."""
    algorithm, second_stage = split_method(method)
    tuned = json.loads((resources.files("crosstail.workflows") / "demo_hparams.json").read_text(encoding="utf-8"))
    shared: dict[str, Any] = {"dataset": "digits", "backbone": "efficientnet_lite0", "tune": "none", "steps": STEPS}
    return RunSpec(**shared, algorithm=algorithm, second_stage=second_stage, hparams=tuned.get(method, {}), seed=seed)
