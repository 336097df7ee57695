"""Sweeps on the terminal: how far they are, and what was chosen, within 80 columns."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from crosstail.cli._tables import percent

if TYPE_CHECKING:
    from crosstail.sweep.plan import Plan
    from crosstail.sweep.select import Choice, Row
    from crosstail.sweep.status import Progress as Status
    from crosstail.sweep.worker import Job, Outcome

HEADINGS = {"pair_average": "pair average", "average": "average", "worst_domain": "worst domain"}


class SweepDisplay(AbstractContextManager["SweepDisplay"]):
    """A bar per algorithm on a terminal, else a line per run."""

    def __init__(self, console: Console, plan: "Plan") -> None:
        self._console = console
        columns = TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.completed:.0f}/{task.total:.0f}")
        failed = TextColumn("{task.fields[failed]}", style="red")
        self._bars = Progress(
            *columns, TimeRemainingColumn(), failed, console=console, transient=True, disable=not console.is_terminal
        )
        total = plan.runs_per_algorithm
        self._tasks = {entry: self._bars.add_task(escape(entry), total=total, failed="") for entry in plan.algorithms}
        self._failed = dict.fromkeys(plan.algorithms, 0)
        self._done, self._total = 0, total * len(plan.algorithms)

    def __enter__(self) -> "SweepDisplay":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def tell(self, job: "Job", outcome: "Outcome") -> None:
        """Show that a run has ended."""
        from crosstail.sweep.plan import entry_of

        entry = entry_of(job.spec.algorithm, job.spec.decouple)
        self._done += 1
        if outcome.how == "failed":
            self._failed[entry] += 1
            self._bars.update(self._tasks[entry], failed=f"{self._failed[entry]} failed")
        self._bars.advance(self._tasks[entry])
        if not self._console.is_terminal and outcome.how != "kept":
            fold = f", unseen {job.spec.unseen}" if job.spec.unseen else ""
            why = f": {outcome.error[-1]}" if outcome.how == "failed" and outcome.error else ""
            line = f"{self._done}/{self._total} {entry}, {job.name}{fold}: {outcome.how}{why}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)


def sweep_table(chosen: Sequence["Choice"], rows: Sequence["Row"]) -> Table:
    """Per algorithm the chosen trial and its test figures, mean ± standard deviation over the seeds."""
    title = "test accuracy of the trial that is best on validation, %"
    table = Table(title=title, box=None, title_justify="left", padding=(0, 1, 0, 0))
    table.add_column("algorithm", overflow="fold")
    for name in ("trial", "val", *HEADINGS.values(), "seeds"):
        table.add_column(name, justify="right")
    for choice, row in zip(chosen, rows, strict=True):
        cells = []
        for metric in HEADINGS:
            mean, deviation = row.figures[metric]
            cells.append(percent(mean) + (f" ± {100 * deviation:.1f}" if deviation is not None else ""))
        seeds = str(row.seeds) if row.seeds == row.planned else f"{row.seeds} of {row.planned}"
        trial = "–" if choice.trial is None else str(choice.trial)
        table.add_row(escape(choice.entry), trial, percent(choice.validation), *cells, seeds)
    return table


def choices_notes(chosen: Sequence["Choice"]) -> Iterator[str]:
    """What the choice does not rest on: trials that are missing or failed, and why."""
    for choice in chosen:
        if choice.missing:
            yield f"{choice.entry}: {choice.missing} of {choice.plan.trials} trials are missing"
        if choice.failed:
            yield f"{choice.entry}: {len(choice.failed)} of {choice.plan.trials} trials failed"
        for trial, failure in list(choice.failed.items())[:3]:
            times = "once" if failure.attempts == 1 else f"{failure.attempts} times"
            yield f"  trial {trial}: {failure.kind}, tried {times}"
            yield from (f"    {line}" for line in failure.error[-3:])


def status_table(rows: Sequence["Status"]) -> Table:
    """Runs per algorithm, and all of them."""
    table = Table(box=None)
    table.add_column("algorithm", overflow="fold")
    for name in ("done", "running", "failed", "pruned", "remaining"):
        table.add_column(name, justify="right")
    for row in rows:
        remaining = "–" if row.remaining is None else span(row.remaining)
        counts = map(str, (row.running, row.failed, row.pruned))
        table.add_row(escape(row.entry), f"{row.done}/{row.planned}", *counts, remaining)
    total = {
        name: sum(getattr(row, name) for row in rows) for name in ("done", "planned", "running", "failed", "pruned")
    }
    known = [row.remaining for row in rows if row.remaining is not None]
    remaining = span(sum(known)) if len(known) == len(rows) else "–"
    counts = map(str, (total["running"], total["failed"], total["pruned"]))
    table.add_row("all", f"{total['done']}/{total['planned']}", *counts, remaining, style="bold")
    return table


def span(seconds: float) -> str:
    """A time in the unit that suits it.

    >>> span(4.2), span(250), span(9000)
    ('4.2 s', '4 min', '2.5 h')
    """
    if seconds < 60:
        return f"{seconds:.2g} s"
    return f"{seconds / 60:.0f} min" if seconds < 3600 else f"{seconds / 3600:.1f} h"


def size(number: float) -> str:
    """A number of bytes in the unit that suits it.

    >>> size(5_400), size(12_000_000), size(3.1e9)
    ('5 kB', '12 MB', '3.1 GB')
    """
    for unit, factor in (("GB", 1e9), ("MB", 1e6)):
        if number >= factor:
            return f"{number / factor:.2g} {unit}"
    return f"{number / 1e3:.0f} kB"
