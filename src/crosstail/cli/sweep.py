"""crosstail sweep: search, select on validation, and repeat the best trial under several seeds, for many methods."""

import json
import tomllib
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin

from cyclopts import App, ArgumentCollection, Parameter, Token
from rich.console import Console

from crosstail import discovery
from crosstail.cli._checks import check_method, check_spec, known_source
from crosstail.cli._imports import import_torch
from crosstail.cli._next import free, say_next
from crosstail.cli._parameters import Json
from crosstail.cli._progress import progress_bar, sweep_progress
from crosstail.cli._run_options import HIDDEN, Data, RunOptions
from crosstail.training.spec import in_order

if TYPE_CHECKING:
    from crosstail.sweeps.plan import Plan
    from crosstail.sweeps.store import Store


@in_order
@dataclass(frozen=True, kw_only=True)
class SweepOptions(RunOptions):
    """The fields that all runs of a sweep share; the sweep sets the others."""

    algorithm: Annotated[str, HIDDEN] = "erm"
    second_stage: Annotated[str | None, HIDDEN] = None
    hparams: Annotated[dict[str, Any], HIDDEN] = field(default_factory=dict)
    stop_at: Annotated[tuple[int, ...] | None, HIDDEN] = None
    seed: Annotated[int, HIDDEN] = 0


Methods = Annotated[
    tuple[str, ...], Parameter(name="--algorithm", help="A method such as boda or boda:retrain, or a file; repeatable.")
]
Trials = Annotated[int, Parameter(help="Trials per method; the first has the default hyperparameters.")]
SEEDS = "Seeds of the trial that is best on validation; with dg, seeds of the whole search."
Workers = Annotated[int | None, Parameter(help="Runs at a time; default: one per GPU, or one per core.")]


def _read_plan(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fill in the options that were not typed from the TOML file given as --plan."""
    options = {argument.field_info.name: argument for argument in arguments if argument.parse and not argument.children}
    if not (given := options.pop("plan").tokens):
        return
    file = Path(given[0].value)
    try:
        plan = tomllib.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{file}: not valid TOML: {error}") from None
    for key, value in plan.items():
        argument = options.get(key.replace("-", "_"))
        if argument is None:
            raise ValueError(f"{file}: unknown key {key!r}: {discovery.suggestion(key, sorted(options))}")
        if argument.tokens:
            continue
        for index, word in enumerate(_words(value, argument.hint, f"{file}: {key}")):
            argument.append(Token(keyword=f"{key} in {file}", value=str(word), index=index))


def _words(value: Any, hint: Any, place: str) -> list[Any]:
    """The words that one would type for a value of an option with this type."""
    kinds = {get_origin(kind) or kind for kind in (hint, *get_args(hint))}
    parts = [value]
    if isinstance(value, dict) and dict in kinds:
        parts = list(value.values())
    elif isinstance(value, list) and tuple in kinds:
        parts = value
    if odd := [part for part in parts if not isinstance(part, str | int | float)]:
        raise ValueError(f"{place}: {odd[0]!r} is a {type(odd[0]).__name__}, which the option does not take")
    return [f"{name}={word}" for name, word in value.items()] if isinstance(value, dict) else parts


app = App(name="sweep", config=_read_plan)


@app.default
def sweep(
    dataset: Data,
    /,
    *,
    algorithm: Methods,
    out: Path,
    plan: Path | None = None,
    trials: Trials = 20,
    seeds: Annotated[int, Parameter(help=SEEDS)] = 3,
    search: Literal["random", "tpe"] = "random",
    launcher: str = "local",
    workers: Workers = None,
    time_limit: float | None = None,
    dry_run: bool = False,
    options: Annotated[SweepOptions, Parameter(name="*")] = SweepOptions(),  # noqa: B008 - immutable
    as_json: Json = False,
) -> None:
    """Search each method's hyperparameters, select on validation, and repeat the best trial under several seeds.

    With dg, as in DomainBed, every seed repeats the search, and each unseen domain has its own best trial. With
    --folds, a trial is trained on every fold and selected by the mean over them.

    Example: `crosstail sweep photos/ --algorithm erm --algorithm boda:retrain --out sweep`

    Args:
        out: Folder of the sweep; the same command again resumes it.
        plan: A TOML file with these options as keys, and DATA as `dataset`; the command line takes precedence.
        search: random, or tpe: Optuna proposes trials from the earlier ones and stops poor ones early.
        launcher: local: processes on this machine; inline: this process; ray or slurm: a cluster.
        time_limit: Seconds after which a run counts as failed.
        dry_run: Only estimate the number of runs, the time and the disk space.
    """
    shared = options.spec(dataset=known_source(dataset))
    check_spec(shared)
    for method in algorithm:
        check_method(method)
    launcher = discovery.known("crosstail.sweeps.launchers", launcher, "launcher")
    import_torch()

    from crosstail.sweeps import plan as planning
    from crosstail.sweeps.drive import sweep as drive
    from crosstail.sweeps.launchers._launcher import Resources
    from crosstail.sweeps.launchers._launcher import launcher as find
    from crosstail.sweeps.store import Store

    planned = planning.make(shared, algorithm, trials=trials, seeds=seeds, search=search)
    store = Store(out)
    console = Console(stderr=True)
    with find(launcher, store, Resources(workers, time_limit)) as crew:
        if dry_run:
            _show_cost(console, planned, crew.workers, as_json)
            return
        with progress_bar(console) as progress:
            events = drive(planned, store, crew, progress)
        with sweep_progress(console, planned) as tell:
            for job, outcome in events:
                tell(job, outcome)
    _show(store, planned, as_json)


def _show_cost(console: Console, planned: "Plan", workers: int, as_json: bool) -> None:
    from crosstail.reports.wording import duration, file_size, several
    from crosstail.sweeps.estimate import estimate

    with progress_bar(console) as progress:
        costs = estimate(planned, progress)
    seconds = sum(cost.seconds for cost in costs) / workers
    runs, disk = sum(cost.runs for cost in costs), sum(cost.size for cost in costs)
    if as_json:
        record = {"runs": runs, "hours": seconds / 3600, "bytes": disk, "algorithms": list(map(asdict, costs))}
        print(json.dumps(record))
        return
    shown = Console(highlight=False, markup=False)
    for cost in costs:
        each = f"{cost.runs} runs of {duration(cost.seconds / cost.runs)}"
        shown.print(f"{cost.method}: {each}, {file_size(cost.size)}")
    crew = several(workers, "worker")
    shown.print(f"In total {runs} runs, about {duration(seconds)} with {crew}, {file_size(disk)} of disk.")


def _show(store: "Store", planned: "Plan", as_json: bool) -> None:
    """Show the accuracies of this plan's methods; the job has failed if a method's runs are incomplete."""
    from crosstail.reports.compare.sweep_tables import selection_notes, selection_table
    from crosstail.reports.document import terminal
    from crosstail.storage import write_json
    from crosstail.sweeps.select import as_file, choices, table

    results = store.results()
    write_json(store.path / "selected.json", as_file(choices(store, results)))
    chosen = choices(store, results, planned)
    rows = table(chosen, results)
    if as_json:
        selected = [as_file([choice for choice in chosen if choice.method == row.method]) for row in rows]
        shown = [own.get(row.method, own) for row, own in zip(rows, selected, strict=True)]  # with dg, by search
        print(json.dumps([asdict(row) | {"hparams": hparams} for row, hparams in zip(rows, shown, strict=True)]))
    else:
        console = Console(highlight=False, markup=False)
        terminal.show([selection_table(rows)], console)
        for note in selection_notes(chosen):
            console.print(note)
        console.print(f"The chosen hyperparameters are in {store.path / 'selected.json'}, for crosstail fit --hparams.")
        say_next(console, "report", store.path, "--out", free("report"))
    if any(row.seeds < row.planned for row in rows):
        raise SystemExit(1)
