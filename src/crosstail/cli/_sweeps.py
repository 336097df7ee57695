"""The progress of a sweep in the terminal."""

from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:
    from crosstail.sweep.plan import Plan
    from crosstail.sweep.worker import Job, Outcome


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
