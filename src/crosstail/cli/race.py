"""crosstail race: which algorithm to use for one's own data."""

import json
import math
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from crosstail.cli import _spec
from crosstail.cli._progress import progress_bar

if TYPE_CHECKING:
    from crosstail.sweep.race import Race


def race(
    dataset: Annotated[str, typer.Argument(metavar="DATA", help=_spec.SOURCES)],
    out: Annotated[Path, typer.Option(help="The race's folder, also for report.html; the same command again goes on.")],
    algorithm: Annotated[
        list[str] | None,
        typer.Option(
            help="By default all of [b]crosstail list algorithms[/]; also [b]boda:decouple[/] or your own file."
        ),
    ] = None,
    trials: Annotated[int, typer.Option(help="Per algorithm; the first has the default hyperparameters.")] = 5,
    seeds: Annotated[int, typer.Option(help="For the trial that is best on validation.")] = 3,
    steps: Annotated[int, typer.Option(help="Of every run.")] = 300,
    batch_size: _spec.BatchSize = None,
    workers: Annotated[int | None, typer.Option(help="Runs at once; by default one per GPU, or per core.")] = None,
    column: _spec.Column = None,
    skip_broken: _spec.SkipBroken = False,
    data_seed: _spec.DataSeed = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print the leaderboard as JSON.")] = False,
) -> None:
    """Try all algorithms on frozen features of your data, with the same small budget, and say which one to use.

    Example: [b]crosstail race photos/ --out race[/]
    """
    from crosstail import algorithms, data, protocols
    from crosstail.cli._options import named_values
    from crosstail.report.compare.race_page import write_page
    from crosstail.sweep.drive import sweep
    from crosstail.sweep.files import write_object
    from crosstail.sweep.launchers._launcher import Resources, launcher
    from crosstail.sweep.race import EVALUATIONS, enter, outcome
    from crosstail.sweep.store import Store

    shared = _spec.run_spec(
        dataset,
        backbone=None,
        weights=None,
        freeze=data.kind_of(dataset, named_values("--column", column)) != "vectors",
        hparams={},
        labels=None,
        column=column,
        skip_broken=skip_broken,
        augment=False,
        data_seed=data_seed,
        steps=steps,
        batch_size=batch_size,
        evaluations=EVALUATIONS,
    )
    entries = algorithm or [entry.name for entry in algorithms.catalogue()]
    store = Store(out)
    with progress_bar(Console(stderr=True)) as progress:
        inputs = protocols.inputs(shared, progress)
        plan, left_out = enter(shared, entries, inputs, trials=trials, seeds=seeds)
        with launcher("local", store, Resources(workers)) as crew:
            total = len(plan.algorithms) * plan.runs_per_algorithm
            for done, _ in enumerate(sweep(plan, store, crew), 1):
                progress("racing", done, total)
    found = outcome(plan, left_out, store, inputs)
    write_object(out / "race.json", found.to_json())
    write_object(out / "selected.json", {row.algorithm: row.hparams for row in found.board})
    if found.board:
        write_page(out)
    if as_json:
        print(json.dumps(found.to_json()))
    else:
        _show(found, out)
    if not found.complete:
        raise typer.Exit(1)


def _show(found: "Race", out: Path) -> None:
    """The leaderboard within 80 columns, what is missing in it, and the recommendation."""
    from crosstail.report.compare.race_page import board_table
    from crosstail.sweep.race import recommendation

    console = Console(highlight=False)
    if found.board:
        table = Table(title="the best on validation first, %", box=None, title_justify="left", padding=(0, 1, 0, 0))
        table.add_column("algorithm", overflow="fold")
        for name in ("val", "test", "95 % interval", "±", "lead of the first", "s"):
            table.add_column(name, justify="right", no_wrap=True)
        for row in board_table(found.to_json()).to_dict("records"):
            lead = (
                f"{row['lead']:+z.1f} ({row['lead_low']:+z.1f} to {row['lead_high']:+z.1f})" if row["place"] > 1 else ""
            )
            table.add_row(
                escape(row["algorithm"]),
                f"{row['validation']:.1f}",
                f"{row['test']:.1f}",
                f"{row['low']:.1f} to {row['high']:.1f}",
                "" if math.isnan(row["deviation"]) else f"{row['deviation']:.1f}",
                lead,
                f"{row['seconds']:.1f}",
                style=None if row["level"] else "dim",
            )
        console.print(table)
    for why in found.left_out.values():
        console.print(f"left out: {why}", markup=False)
    for failed in found.failed:
        console.print(f"failed: {failed.algorithm}, {failed.run}: {failed.error}", markup=False)
    if found.board:
        run = shlex.quote(str(out / "runs" / found.board[0].runs[0]))
        console.print(recommendation(found.board, found.samples), style="bold", markup=False)
        console.print(f"More in {out / 'report.html'}. Next: crosstail predict {run} FILES", markup=False)
