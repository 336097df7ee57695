"""crosstail sweep: trials, selection on validation, and the chosen under several seeds, for many algorithms."""

import json
import shlex
import tomllib
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from crosstail import discovery
from crosstail.cli import _spec
from crosstail.cli._progress import progress_bar
from crosstail.cli._sweeps import SweepDisplay, choices_notes, size, span, sweep_table

if TYPE_CHECKING:
    from crosstail.sweep.plan import Plan
    from crosstail.sweep.store import Store


def _from_file(context: typer.Context, file: Path | None) -> Path | None:
    """Take what a TOML file says as the defaults of the options."""
    if file is None:
        return None
    try:
        words = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{file}: there is no such file") from None
    except ValueError as error:
        raise ValueError(f"{file} is no TOML: {error}") from None
    options = {option.name: option for option in context.command.params if option.name not in (None, "plan")}
    context.default_map = {}
    for word, value in words.items():
        option = options.get(word.replace("-", "_"))
        if option is None:
            raise ValueError(f"{file}: unknown word {word!r}: {discovery.suggestion(word, sorted(map(str, options)))}")
        single = option.nargs == 1 and getattr(option, "multiple", False) and not isinstance(value, list)
        context.default_map[str(option.name)] = [value] if single else value
    return file


def sweep(
    dataset: Annotated[str, typer.Option(help=_spec.SOURCES)],
    out: Annotated[Path, typer.Option(help="The sweep's folder; the same command again goes on.")],
    algorithm: Annotated[
        list[str],
        typer.Option(help="See [b]crosstail list algorithms[/]; [b]boda:decouple[/] trains the classifier again."),
    ],
    plan: Annotated[
        Path | None,
        typer.Option(callback=_from_file, is_eager=True, help="A TOML file with the same words; options come first."),
    ] = None,
    trials: Annotated[int, typer.Option(help="Per algorithm; the first has the default hyperparameters.")] = 20,
    seeds: Annotated[int, typer.Option(help="For the trial that is best on validation.")] = 3,
    search: Annotated[
        str, typer.Option(help="random, or tpe: by Optuna from the trials before, with an early end for poor ones.")
    ] = "random",
    launcher: Annotated[
        str, typer.Option(help="local: processes on this machine; inline: this process; ray or slurm: a cluster.")
    ] = "local",
    workers: Annotated[int | None, typer.Option(help="Runs at once; default: one per GPU, or per core.")] = None,
    time_limit: Annotated[float | None, typer.Option(help="Seconds after which a run counts as failed.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show how many runs, how long and how large.")] = False,
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
    data_seed: _spec.DataSeed = 0,
    steps: _spec.Steps = None,
    batch_size: _spec.BatchSize = None,
    evaluations: _spec.Evaluations = 10,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures as JSON.")] = False,
) -> None:
    """Search each algorithm's hyperparameters, select on validation, and run the best under several seeds.

    Example: [b]crosstail sweep --dataset photos/ --algorithm erm --algorithm boda:decouple --out sweep[/]
    """
    from crosstail.sweep import plan as planning
    from crosstail.sweep.drive import sweep as drive
    from crosstail.sweep.launchers._launcher import Resources
    from crosstail.sweep.launchers._launcher import launcher as find
    from crosstail.sweep.store import Store

    shared = _spec.run_spec(
        dataset,
        backbone=backbone,
        weights=weights,
        resolution=resolution,
        freeze=freeze,
        head=head,
        views=views,
        width=width,
        hparams={},
        protocol=protocol,
        unseen=unseen,
        labels=labels,
        column=column,
        skip_broken=skip_broken,
        augment=augment,
        data_seed=data_seed,
        steps=steps,
        batch_size=batch_size,
        evaluations=evaluations,
    )
    planned = planning.make(shared, algorithm, trials=trials, seeds=seeds, search=search)
    store = Store(out)
    console = Console(stderr=True)
    with find(launcher, store, Resources(workers, time_limit)) as crew:
        if dry_run:
            _show_cost(console, planned, crew.workers, as_json)
            return
        with progress_bar(console) as progress:
            events = drive(planned, store, crew, progress)
        with SweepDisplay(console, planned) as display:
            for job, outcome in events:
                display.tell(job, outcome)
    _show(store, planned, as_json)


def _show_cost(console: Console, planned: "Plan", workers: int, as_json: bool) -> None:
    from crosstail.sweep.estimate import estimate

    with progress_bar(console) as progress:
        costs = estimate(planned, progress)
    seconds = sum(cost.seconds for cost in costs) / workers
    runs, room = sum(cost.runs for cost in costs), sum(cost.size for cost in costs)
    if as_json:
        print(
            json.dumps({"runs": runs, "hours": seconds / 3600, "bytes": room, "algorithms": list(map(asdict, costs))})
        )
        return
    shown = Console(highlight=False)
    for cost in costs:
        each = f"{cost.runs} runs of {span(cost.seconds / cost.runs)}"
        shown.print(f"{cost.entry}: {each}, {size(cost.size)}", markup=False)
    at_once = f"with {workers} worker{'s' * (workers > 1)}"
    shown.print(f"In all {runs} runs, about {span(seconds)} {at_once}, {size(room)} of disk.")


def _show(store: "Store", planned: "Plan", as_json: bool) -> None:
    """The figures of this plan's algorithms; the job has failed if the chosen are not all finished."""
    from crosstail.sweep.files import write_object
    from crosstail.sweep.select import as_file, choices, table

    results = store.results()
    write_object(store.path / "selected.json", as_file(choices(store, results)))
    chosen = choices(store, results, planned)
    rows = table(chosen, results)
    if as_json:
        print(json.dumps([asdict(row) | {"hparams": c.hparams} for row, c in zip(rows, chosen, strict=True)]))
    else:
        console = Console(highlight=False)
        console.print(sweep_table(chosen, rows))
        for note in choices_notes(chosen):
            console.print(note, markup=False)
        place = shlex.quote(str(store.path / "selected.json"))
        console.print(f"Next: crosstail fit DATA --hparams {place} --algorithm NAME --out run", markup=False)
    if any(row.seeds < row.planned for row in rows):
        raise typer.Exit(1)
