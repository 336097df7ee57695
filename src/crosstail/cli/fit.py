"""crosstail fit: train one model."""

import json
import shlex
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from crosstail.cli import _spec
from crosstail.cli._options import named_values
from crosstail.cli._progress import progress_bar
from crosstail.cli._tables import folds_table, result_table


def fit(
    dataset: Annotated[str, typer.Argument(help=_spec.SOURCES)],
    out: Annotated[Path, typer.Option(help="The run's folder; the same command again goes on or shows the result.")],
    algorithm: Annotated[
        str, typer.Option(help="See [b]crosstail list algorithms[/]; boda+coral; or a file, ./mine.py.")
    ] = "boda",
    decouple: Annotated[bool, typer.Option("--decouple", help="Train the classifier again, class-balanced.")] = False,
    average: Annotated[
        bool, typer.Option("--average", help="Keep a moving average of the weights; the raw ones are shown beside it.")
    ] = False,
    backbone: _spec.Backbone = None,
    weights: _spec.Weights = None,
    resolution: _spec.Resolution = None,
    freeze: _spec.Freeze = None,
    head: _spec.Head = "mlp",
    views: _spec.Views = 0,
    width: _spec.Width = None,
    protocol: _spec.Protocol = "mdlt",
    unseen: _spec.Unseen = None,
    labels: _spec.Labels = None,
    column: _spec.Column = None,
    skip_broken: _spec.SkipBroken = False,
    augment: _spec.Augment = None,
    hp: Annotated[list[str] | None, typer.Option(help="A hyperparameter, as [b]name=value[/]; repeatable.")] = None,
    hparams: Annotated[
        Path | None, typer.Option(help="Hyperparameters from a file that [b]crosstail select[/] wrote.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of the weights and the batches.")] = 0,
    data_seed: _spec.DataSeed = 0,
    steps: _spec.Steps = None,
    batch_size: _spec.BatchSize = None,
    evaluations: _spec.Evaluations = 10,
    precision: Annotated[str, typer.Option(help="32, or bf16: mixed precision.")] = "32",
    accelerator: Annotated[str, typer.Option(help="cpu, cuda, mps, or auto: the best there is.")] = "auto",
    devices: Annotated[int, typer.Option(help="Processes that share every batch, each with a device.")] = 1,
    nodes: Annotated[int, typer.Option(help="Machines; start the command on each with torchrun or srun.")] = 1,
    accumulate: Annotated[int, typer.Option(help="Parts of a batch that go through the network in turn.")] = 1,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the network (torch.compile).")] = False,
    log: Annotated[
        str | None, typer.Option(help="Also write a log: csv (RUN/log.csv), tensorboard (RUN/tensorboard) or mlflow.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Keep how the pairs lie to each other at every evaluation, for the report.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
) -> None:
    """Train a model that works for every (domain, class) pair.

    Example: [b]crosstail fit photos/ --algorithm boda --decouple --out run[/]
    """
    from crosstail import algorithms, protocols
    from crosstail.report.run.page import write_page
    from crosstail.training.devices import Devices, is_main_process
    from crosstail.training.folder import RunFolder
    from crosstail.training.logs import logged

    console = Console(stderr=True)
    given = _selected(hparams, algorithm, decouple) if hparams else {}
    given |= named_values("--hp", hp)
    typed = algorithms.parse(algorithms.find(algorithm).Hparams, given)
    spec = _spec.run_spec(
        dataset,
        algorithm=algorithm,
        decouple=decouple,
        backbone=backbone,
        weights=weights,
        resolution=resolution,
        freeze=freeze,
        head=head,
        views=views,
        width=width,
        protocol=protocol,
        unseen=unseen,
        labels=labels,
        column=column,
        skip_broken=skip_broken,
        augment=augment,
        hparams={name: getattr(typed, name) for name in given},  # 1e-3 and 0.001 are the same run
        average=average,
        seed=seed,
        data_seed=data_seed,
        steps=steps,
        batch_size=batch_size,
        evaluations=evaluations,
        precision=precision,
    )
    spec = replace(spec, hparams=algorithms.draw(type(typed), 0, finetune=spec.finetunes) | spec.hparams)
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
            results.append(protocols.run(plan, place, shown_to, devices=machine, trace=trace))
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
    if trace and not any("trace" in record for record in RunFolder(places[0]).records()):
        shown.print("note: this run was finished before without --trace; another --out trains it again, with a trace")
    shown.print(result_table(results[0]) if len(results) == 1 else folds_table(results))
    run = shlex.quote(str(out))
    then = f", crosstail predict {run} FILES, or crosstail graph {run}" if len(results) == 1 else ""
    shown.print(f"Next: open {out / 'report.html'}{then}", markup=False, highlight=False, soft_wrap=True)


def _selected(file: Path, algorithm: str, decouple: bool) -> dict[str, Any]:
    """The hyperparameters of an algorithm in a file {algorithm: {name: value}}."""
    from crosstail.sweep.files import read_object
    from crosstail.sweep.plan import entry_of

    if not file.exists():
        raise FileNotFoundError(f"{file}: there is no such file")
    entry, found = entry_of(algorithm, decouple), read_object(file)
    if found is None or not all(isinstance(words, dict) for words in found.values()):
        raise ValueError(f'{file}: expected JSON such as {{"{entry}": {{"lr": 0.001}}}}, as crosstail select writes it')
    if entry not in found:
        raise ValueError(f"{file} has nothing for {entry}: there are {', '.join(found)}")
    words: dict[str, Any] = found[entry]
    return words
