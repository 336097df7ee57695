"""crosstail sweep: search, select on validation, and repeat the best trial under several seeds, for many methods."""

import json
import tomllib
from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

from cyclopts import App, ArgumentCollection, Token
from rich.console import Console

from crosstail import discovery
from crosstail.cli._checks import check_spec, known_source
from crosstail.cli._next import say_next
from crosstail.cli._progress import progress_bar, sweep_progress
from crosstail.cli._run_options import SWEPT, Data, RunOptions, options
from crosstail.cli._verb import Json, described, import_torch
from crosstail.workflows._output import PLANS, unused_path

if TYPE_CHECKING:
    from crosstail.sweeps.plan import Plan
    from crosstail.sweeps.worker import Job, Outcome
    from crosstail.workflows.sweep import Estimated, Swept


def _read_plan(app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
    """Fill in the options that were not typed from the TOML file given as --plan."""
    options = {argument.field_info.name: argument for argument in arguments if argument.parse and not argument.children}
    if not (given := options.pop("plan").tokens):
        return
    file = shipped if (shipped := PLANS / f"{given[0].value}.toml").is_file() else Path(given[0].value)
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
@described
def sweep(
    dataset: Data,
    /,
    *,
    algorithm: tuple[str, ...],
    out: Path,
    plan: Path | None = None,
    trials: int = 20,
    seeds: int = 3,
    launcher: str = "local",
    workers: int | None = None,
    time_limit: float | None = None,
    rule: str | None = None,
    dry_run: bool = False,
    options: Annotated[RunOptions, options(without=SWEPT)] = RunOptions(),  # noqa: B008 - immutable
    as_json: Json = False,
) -> None:
    """Example: `crosstail sweep photos/ --algorithm erm --algorithm boda:retrain --out sweep`

    Args:
        algorithm: A method such as boda or boda:retrain, or a file; repeatable.
        plan: A TOML file with these options as keys, and DATA as `dataset`, or a plan of the paper such as mdlt or dg.
            The command line takes precedence.
        dry_run: Only estimate the number of runs, the time and the disk space."""
    spec = options.spec(dataset=known_source(dataset))
    check_spec(spec, algorithm)
    launcher = discovery.known("crosstail.sweeps.launchers", launcher, "launcher")
    import_torch()

    from crosstail.workflows.sweep import estimate, sweep

    how: dict[str, Any] = {"algorithm": algorithm, "trials": trials, "seeds": seeds, "hparams": spec.hparams}
    how |= {"launcher": launcher, "workers": workers, "time_limit": time_limit, "rule": rule}
    console = Console(stderr=True)
    with ExitStack() as shown:
        how["progress"] = shown.enter_context(progress_bar(console))
        if dry_run:
            _show_cost(estimate(spec, out, **how), as_json)
            return

        def watch(plan: "Plan") -> "AbstractContextManager[Callable[[Job, Outcome], None]]":
            shown.close()  # a terminal has one display at a time
            return sweep_progress(console, plan)

        swept = sweep(spec, out, **how, watch=watch)
    _show(swept, as_json)
    if not swept.complete:
        raise SystemExit(1)


def _show_cost(cost: "Estimated", as_json: bool) -> None:
    from crosstail.reports.wording import duration, file_size, several

    if as_json:
        print(json.dumps(cost.to_json()))
        return
    shown = Console(highlight=False, markup=False)
    for own in cost.methods:
        each = f"{own.runs} runs of {duration(own.seconds / own.runs)}"
        shown.print(f"{own.method}: {each}, {file_size(own.size)}")
    crew = several(cost.workers, "worker")
    shown.print(
        f"In total {cost.runs} runs, about {duration(cost.seconds)} with {crew}, {file_size(cost.size)} of disk."
    )


def _show(swept: "Swept", as_json: bool) -> None:
    from crosstail.reports.compare.sweep_tables import selection_notes, selection_table
    from crosstail.reports.document import terminal

    if as_json:
        print(json.dumps(swept.to_json()))
        return
    console = Console(highlight=False, markup=False)
    terminal.show([selection_table(swept.rows)], console)
    for note in selection_notes(swept.chosen):
        console.print(note)
    console.print(f"The chosen hyperparameters are in {swept.file}, for crosstail fit --hparams.")
    say_next(console, "report", swept.file.parent, "--out", unused_path("report"))
