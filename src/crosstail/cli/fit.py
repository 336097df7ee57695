"""crosstail fit: train one model."""

import json
import shlex
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter
from rich.console import Console

from crosstail.cli._parameters import Json
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import Data, RunOptions
from crosstail.cli._tables import folds_table, result_table


def fit(
    dataset: Data,
    /,
    *,
    out: Path,
    options: Annotated[RunOptions, Parameter(name="*")] = RunOptions(),  # noqa: B008 - immutable
    selected: Annotated[Path | None, Parameter(name="--hparams")] = None,
    accelerator: str = "auto",
    devices: int = 1,
    nodes: int = 1,
    accumulate: int = 1,
    compiled: Annotated[bool, Parameter(name="--compile")] = False,
    log: str | None = None,
    as_json: Json = False,
) -> None:
    """Train a model that works for every (domain, class) pair.

    Example: `crosstail fit photos/ --algorithm boda --second-stage retrain --out run`

    Args:
        out: Folder of the run; the same command again resumes it or shows the result.
        selected: Hyperparameters from a file that `crosstail select` wrote; --hp overrides them.
        accelerator: cpu, cuda, mps, or auto for the best available.
        devices: Number of processes per machine that share every batch, one device each.
        nodes: Number of machines; start the command on each with torchrun or srun.
        accumulate: Split each batch into this many parts to save memory.
        compiled: Compile the network with torch.compile.
        log: Also write a log: csv (RUN/log.csv), tensorboard (RUN/tensorboard) or mlflow.
    """
    from crosstail import algorithms, protocols
    from crosstail.report.run.page import write_page
    from crosstail.training.devices import Devices, is_main_process
    from crosstail.training.folder import RunFolder
    from crosstail.training.logs import logged

    console = Console(stderr=True)
    given = (_selected(selected, options.method) if selected else {}) | options.hparams
    typed = algorithms.parse(algorithms.find(options.algorithm).Hparams, given)
    # 1e-3 and 0.001 are the same run.
    spec = options.spec(dataset=dataset, hparams={name: getattr(typed, name) for name in given})
    machine = Devices(accelerator, devices, nodes, accumulate, compiled)
    plans = protocols.folds(spec)
    places = [out if len(plans) == 1 else out / str(plan.unseen) for plan in plans]
    results = []
    for plan, place in zip(plans, places, strict=True):
        with ExitStack() as stack:
            progress = stack.enter_context(progress_bar(console, f"unseen {plan.unseen}:" if plan.unseen else ""))
            if log and is_main_process():
                progress = stack.enter_context(logged(log, plan, place, progress))
            shown_to = progress if is_main_process() else None
            results.append(protocols.run(plan, place, shown_to, devices=machine, trace=spec.trace))
        if is_main_process():
            write_page(place, [place])
    if not is_main_process():
        return
    if len(plans) > 1:
        write_page(out, places)
    if as_json:
        print(json.dumps(results[0] if len(results) == 1 else results))
        return
    shown = Console()
    for note in results[0]["data"]["notes"]:
        shown.print(f"note: {note}", markup=False)
    if spec.trace and not any("trace" in record for record in RunFolder(places[0]).records()):
        shown.print("note: this run was finished before without --trace; use another --out to train it with a trace")
    shown.print(result_table(results[0]) if len(results) == 1 else folds_table(results))
    run = shlex.quote(str(out))
    then = f", crosstail predict {run} FILES, or crosstail graph {run}" if len(results) == 1 else ""
    shown.print(f"Next: open {out / 'report.html'}{then}", markup=False, highlight=False, soft_wrap=True)


def _selected(file: Path, method: str) -> dict[str, Any]:
    """The hyperparameters of a method in a file {method: {name: value}}."""
    from crosstail.storage import read_json

    if not file.exists():
        raise FileNotFoundError(f"{file}: no such file")
    found = read_json(file, dict[str, dict[str, Any]])
    if method not in found:
        raise ValueError(f"{file} has no hyperparameters for {method}, only for {', '.join(found)}")
    return found[method]
