"""crosstail race: find out which method to use for your data."""

from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec
from cyclopts import Parameter
from cyclopts.validators import Number
from rich.console import Console

from crosstail.cli._checks import check_method, check_spec, known_source
from crosstail.cli._imports import import_torch
from crosstail.cli._next import free, pasted
from crosstail.cli._own_folder import require_own
from crosstail.cli._parameters import Json
from crosstail.cli._progress import progress_bar
from crosstail.cli._run_options import HIDDEN, Data, DataSeed, SelectOn, without_dg
from crosstail.cli.sweep import SEEDS, Methods, SweepOptions, Trials, Workers

if TYPE_CHECKING:
    from crosstail.sweeps.plan import Plan
    from crosstail.training import RunSpec

NOT_INHERITED = {"algorithm", "augment", "steps", "evaluations"}
"""Fields that the run after a race has of its own: the winning method, default augmentation and a full budget."""


@dataclass(frozen=True, kw_only=True)
class RaceOptions(SweepOptions):
    """The fields of a run that a race leaves open: it trains on frozen features of all domains."""

    protocol: Annotated[Literal["mdlt", "dg"], HIDDEN] = "mdlt"
    unseen: Annotated[str | None, HIDDEN] = None
    fold: Annotated[int | None, HIDDEN] = None
    freeze: Annotated[bool | None, HIDDEN] = None
    augment: Annotated[bool | None, HIDDEN] = False
    evaluations: Annotated[int, HIDDEN] = 3
    data_seed: DataSeed = 0
    select_on: SelectOn = None
    steps: int | None = 300
    """Training steps of every run."""


def race(
    dataset: Data,
    /,
    *,
    out: Path,
    algorithm: Methods = (),
    trials: Trials = 5,
    seeds: Annotated[int, Parameter(help=without_dg(SEEDS))] = 3,
    finalists: Annotated[int, Parameter(validator=Number(gte=1))] = 12,
    workers: Workers = None,
    options: Annotated[RaceOptions, Parameter(name="*")] = RaceOptions(),  # noqa: B008 - immutable
    as_json: Json = False,
) -> None:
    """Try all algorithms on frozen features of your data, with the same small budget, and recommend one.

    Example: `crosstail race photos/ --out race`

    Args:
        out: Folder of the race and its report.html; the same command again resumes it.
        finalists: Number of methods, besides erm and the default, that get all trials and seeds; before that, the worse
            half on validation is dropped after each trial.
    """
    typed = options.spec(dataset=known_source(dataset))
    check_spec(typed)
    for method in algorithm:
        check_method(method)
    import_torch()

    from crosstail import algorithms, data
    from crosstail.reports.compare.race_page import leaderboard, write_page
    from crosstail.reports.document import terminal
    from crosstail.storage import write_json
    from crosstail.sweeps.drive import sweep
    from crosstail.sweeps.halving import rounds
    from crosstail.sweeps.launchers._launcher import Resources, launcher
    from crosstail.sweeps.race import SharedTest, enter, outcome
    from crosstail.sweeps.recommendation import start_with
    from crosstail.sweeps.store import Failure, Store
    from crosstail.training.existing import point_to
    from crosstail.training.inputs import folds, load_inputs, load_source, split_source
    from crosstail.training.resolve import resolve

    shared = replace(typed, freeze=data.kind_in(typed.dataset, typed.columns).picture)
    methods = algorithm or [entry.name for entry in algorithms.catalogue()]
    require_own(out, own=(out / "race.json").exists() and not (out / "spec.json").exists())
    store = Store(out)
    with progress_bar(Console(stderr=True)) as progress:
        resolved = resolve(shared)
        source = load_source(resolved, progress)
        parts = folds(resolved, source)
        samples = load_inputs(parts[0], source).seen(progress)
        plan, left_out = enter(shared, methods, samples, trials=trials, seeds=seeds)
        plans: list[Plan] = []
        failures: dict[str, Failure] = {}
        with launcher("local", store, Resources(workers)) as crew:
            for part in rounds(plan, store, finalists):
                plans.append(part)
                total = len(part.methods) * part.runs_per_method
                for done, (_, ended) in enumerate(sweep(part, store, crew), 1):
                    progress(f"round {len(plans)}, {len(part.methods)} methods", done, total)
                    if ended.how == "failed":
                        failures[ended.key] = Failure("error", ended.error, 1)
    tested = SharedTest.of([split_source(part, source) for part in parts])
    found = outcome(plans, left_out, store, tested, {**failures, **store.failures()})  # a full disk records none
    board = found.leaderboard
    if board:
        found = msgspec.structs.replace(found, next=_next(shared, start_with(board).method, out))
    write_json(out / "race.json", found)
    write_json(out / "selected.json", {row.method: row.hparams for row in board})
    if board:
        write_page(found, out)
        if shared.folds is None:
            (run, *_), *_ = start_with(board).runs.values()
            point_to(out / "runs" / run, out / "best")
    console = Console(highlight=False, markup=False, quiet=as_json)
    if as_json:
        print(msgspec.json.encode(found).decode())
    if board:
        terminal.show([leaderboard(board, narrow=True)], console)
    if found.stopped:
        console.print(f"Stopped early, on validation: {', '.join(one.method for one in found.stopped)}.")
    for why in left_out.values():
        console.print(f"left out: {why}")
    for note in found.notes:
        console.print(f"note: {note}")
    for failed in found.failed:
        console.print(f"failed: {failed.method}, {failed.run}: {failed.error}")
    if board:
        console.print(found.recommendation, style="bold")
        best = "" if shared.folds else f" Its model is {out / 'best'}."
        console.print(f"More in {out / 'report.html'}.{best}")
        console.print(f"Next: {found.next}", soft_wrap=True)
    if not board and found.failed:
        raise OSError(f"no run of the race in {out} has a result: {found.failed[-1].error}")
    if not found.complete:
        raise SystemExit(1)


def _next(shared: "RunSpec", method: str, out: Path) -> str:
    """The command that trains a method with the hyperparameters that the race chose."""
    from crosstail.reports.run.command import options

    shared = replace(shared, freeze=shared.freeze or None)  # vectors are what they are
    refit = ["--refit"] if shared.folds else []
    inherited = {field.name for field in fields(shared)} - NOT_INHERITED
    words = *options(shared, only=inherited), "--algorithm", method, "--hparams", out / "selected.json", *refit
    return pasted("fit", shared.dataset, *words, "--out", free("run"))
