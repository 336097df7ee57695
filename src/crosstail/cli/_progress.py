"""A progress bar with the time left, for work that reports its steps."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

if TYPE_CHECKING:  # importing torch takes seconds, and --help does not need it
    from crosstail.training.progress import Progress as Report


@contextmanager
def progress_bar(console: Console, label: str = "") -> "Iterator[Report]":
    """Yield a function that takes a task's name, steps done and steps in total; a new name starts a new bar."""
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}")
    with Progress(
        *columns, TimeRemainingColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bars:
        tasks: dict[str, TaskID] = {}
        shown = 0.0

        def report(what: str, done: int, total: int) -> None:
            nonlocal shown
            if what not in tasks:
                for task in tasks.values():
                    bars.update(task, visible=False)
                tasks[what] = bars.add_task(f"{label} {what}".strip(), total=total)
            now = time.monotonic()
            # A step may take 0.3 ms: drawing each one would take longer than the work.
            if now - shown > 0.1 or done == total:
                bars.update(tasks[what], completed=done)
                shown = now

        yield report
