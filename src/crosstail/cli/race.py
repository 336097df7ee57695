"""crosstail race: find out which method to use for your data."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from crosstail.cli._checks import check_spec, known_source
from crosstail.cli._next import say_all
from crosstail.cli._progress import race_progress
from crosstail.cli._run_options import SWEPT, Data, DataSeed, Labels, RunOptions, SelectOn, options
from crosstail.cli._verb import Json, described, import_torch
from crosstail.training.spec import in_order

FIXED = ("hparams", "protocol", "unseen", "fold", "tune", "augment", "evaluations")  # frozen features of all domains


@in_order
@dataclass(frozen=True, kw_only=True)
class RaceOptions(RunOptions):
    """With the defaults of a race, and no words about unseen domains."""

    labels: Labels = None
    data_seed: DataSeed = 0
    select_on: SelectOn = None
    steps: int | None = 300
    """Training steps of every run."""


@described
def race(
    dataset: Data,
    /,
    *,
    out: Path,
    algorithm: tuple[str, ...] = (),
    trials: int = 5,
    seeds: int = 3,
    finalists: Annotated[int, Parameter(validator=Number(gte=1))] = 12,
    workers: int | None = None,
    quick: bool = False,
    options: Annotated[RaceOptions, options(without=(*SWEPT, *FIXED))] = RaceOptions(),  # noqa: B008 - immutable
    as_json: Json = False,
) -> None:
    """Example: `crosstail race photos/ --out race`

    Args:
        algorithm: A method such as boda or boda:retrain, or a file; repeatable. Default: every algorithm."""
    spec = options.spec(dataset=known_source(dataset))
    check_spec(spec, algorithm)
    import_torch()

    from crosstail.reports.compare.race_page import expectation, leaderboard, stopped_early
    from crosstail.reports.document import terminal
    from crosstail.workflows.race import race

    budget: dict[str, Any] = {"trials": trials, "seeds": seeds, "finalists": finalists, "workers": workers}
    with race_progress(Console(stderr=True)) as (progress, watch):
        raced = race(spec, out, algorithm=algorithm, **budget, quick=quick, progress=progress, watch=watch)
    found, board = raced.result, raced.result.leaderboard
    if as_json:
        print(msgspec.json.encode(found).decode())
    else:
        console = Console(highlight=False, markup=False)
        if board:
            terminal.show([leaderboard(board, narrow=True)], console)
        if board and found.stopped:
            console.print(f"{stopped_early(found)}.")
        say_all(console, "left out", found.left_out.values(), wrap=True)
        say_all(console, "note", found.notes, wrap=True)
        failed = (f"{one.method}, {one.run}: {one.error}" for one in found.failed)
        say_all(console, "failed", failed, wrap=True)
        if board:
            console.print(found.recommendation, style="bold")
            console.print(expectation(found))
            console.print(f"The page is in {out / 'report.html'}.", soft_wrap=True)
            if raced.best:
                console.print(f"The model is {raced.best}, with a page of its own.", soft_wrap=True)
            console.print(f"Next: {found.next}", soft_wrap=True)
    if not board and found.failed:
        raise OSError(f"no run of the race in {out} has a result: {found.failed[-1].error}")
    if not found.complete:
        raise SystemExit(1)
