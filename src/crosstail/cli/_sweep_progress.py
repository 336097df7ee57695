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
    """One bar per method on a terminal, otherwise one line per run."""

    def __init__(self, console: Console, plan: "Plan") -> None:
        self._console = console
        columns = TextColumn("{task.description}"), BarColumn(20), TextColumn("{task.completed:.0f}/{task.total:.0f}")
        failed = TextColumn("{task.fields[failed]}", style="red")
        self._bars = Progress(
            *columns, TimeRemainingColumn(), failed, console=console, transient=True, disable=not console.is_terminal
        )
        total = plan.runs_per_method
        self._tasks = {method: self._bars.add_task(escape(method), total=total, failed="") for method in plan.methods}
        self._failed = dict.fromkeys(plan.methods, 0)
        self._done, self._total = 0, total * len(plan.methods)

    def __enter__(self) -> "SweepDisplay":
        self._bars.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._bars.stop()

    def tell(self, job: "Job", outcome: "Outcome") -> None:
        """Show that a run has ended."""
        method = job.spec.method
        self._done += 1
        if outcome.how == "failed":
            self._failed[method] += 1
            self._bars.update(self._tasks[method], failed=f"{self._failed[method]} failed")
        self._bars.advance(self._tasks[method])
        if not self._console.is_terminal and outcome.how != "kept":
            fold = f", unseen {job.spec.unseen}" if job.spec.unseen else ""
            why = f": {outcome.error[-1]}" if outcome.how == "failed" and outcome.error else ""
            line = f"{self._done}/{self._total} {method}, {job.name}{fold}: {outcome.how}{why}"
            self._console.print(line, markup=False, highlight=False, soft_wrap=True)
