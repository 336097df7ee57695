"""Progress with the time left, for consecutive tasks and for sweeps: bars on a terminal, lines in a log."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:  # importing torch takes seconds, and --help does not need it
    from crosstail.progress import Progress as Report
    from crosstail.sweeps.plan import Plan
    from crosstail.sweeps.worker import Job, Outcome


INTERVAL = 10.0  # seconds between two lines where there is no terminal


def _bars(console: Console, width: int, *more: ProgressColumn) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(width), TextColumn("{task.completed:.0f}/{task.total:.0f}")
    shown = *columns, TimeRemainingColumn(), *more
    return Progress(*shown, console=console, transient=True, disable=not console.is_terminal)


def _lines(console: Console) -> "Report":
    """Report in lines, for a log: one every few seconds, and a last one for a task that had others."""
    began: dict[str, float] = {}
    last = time.monotonic()
    told = ""

    def report(what: str, done: int, total: int) -> None:
        nonlocal last, told
        now = time.monotonic()
        start = began.setdefault(what, now)
        if now - max(last, start) < INTERVAL and not (done == total and told == what):
            return
        seconds = round((now - start) / max(done, 1) * (total - done))
        left = f", about {timedelta(seconds=seconds)} left" if 0 < done < total else ""
        console.print(f"{what}: {done:,}/{total:,}{left}", markup=False, highlight=False, soft_wrap=True)
        last, told = now, "" if done == total else what

    return report


@contextmanager
def progress_bar(console: Console) -> "Iterator[Report]":
    """Yield a function that takes a task's name, steps done and steps in total; a new name starts a new bar.

    Where there is no terminal, it writes lines.
    """
    if not console.is_terminal:
        yield _lines(console)
        return
    with _bars(console, 40) as bars:
        tasks: dict[str, TaskID] = {}
        shown = 0.0

        def report(what: str, done: int, total: int) -> None:
            nonlocal shown
            if what not in tasks:
                for task in tasks.values():
                    bars.update(task, visible=False)
                tasks[what] = bars.add_task(what, total=total)
            now = time.monotonic()
            # A step may take 0.3 ms: drawing each one would take longer than the work.
            if now - shown > 0.1 or done == total:
                bars.update(tasks[what], completed=done)
                shown = now

        yield report


@contextmanager
def sweep_progress(console: Console, plan: "Plan") -> "Iterator[Callable[[Job, Outcome], None]]":
    """Yield a function that shows a run's outcome: on a terminal in a bar per method, otherwise in a line per run."""
    with _bars(console, 20, TextColumn("{task.fields[failed]}", style="red")) as bars:
        total = plan.runs_per_method
        tasks = {method: bars.add_task(escape(method), total=total, failed="") for method in plan.methods}
        failed, numbers = Counter[str](), count(1)

        def tell(job: "Job", outcome: "Outcome") -> None:
            method, number = job.spec.method, next(numbers)
            if outcome.how == "failed":
                failed[method] += 1
                bars.update(tasks[method], failed=f"{failed[method]} failed")
            bars.advance(tasks[method])
            if not console.is_terminal and outcome.how != "kept":
                fold = f", {job.spec.part}" if job.spec.part else ""
                fold += f", seed {job.spec.seed}" if job.spec.unseen else ""
                why = f": {outcome.error[-1]}" if outcome.how == "failed" and outcome.error else ""
                line = f"{number}/{total * len(tasks)} {method}, {job.name}{fold}: {outcome.how}{why}"
                console.print(line, markup=False, highlight=False, soft_wrap=True)

        yield tell
