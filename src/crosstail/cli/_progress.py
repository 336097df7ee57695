"""Progress with the time left, for consecutive tasks and for sweeps: bars on a terminal, lines in a log."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count
from threading import Event, Thread
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TaskID, TextColumn, TimeRemainingColumn
from rich.text import Text

from crosstail.cli._next import say_all

if TYPE_CHECKING:  # importing torch takes seconds, and --help does not need it
    from crosstail.progress import Progress as Report
    from crosstail.sweeps.outlook import Outlook
    from crosstail.sweeps.plan import Plan
    from crosstail.sweeps.worker import Job, Outcome


INTERVAL = 10.0  # seconds between two lines where there is no terminal


class _TimeLeft(TimeRemainingColumn):
    """The time left by the pace of a task, unless it has an estimate of its own."""

    def render(self, task: Task) -> Text:
        left = task.fields.get("left")
        return Text(left, "progress.remaining") if left else super().render(task) if task.completed else Text()


def _bars(console: Console, width: int, *more: ProgressColumn) -> Progress:
    columns = TextColumn("{task.description}"), BarColumn(width), TextColumn("{task.completed:.0f}/{task.total:.0f}")
    shown = *columns, _TimeLeft(), *more
    return Progress(*shown, console=console, transient=True, disable=not console.is_terminal)


class _Log:
    """Progress in lines, for a log: one every few seconds, also while nothing is reported, and none for short work."""

    def __init__(self, console: Console) -> None:
        self.console, self.began = console, dict[str, float]()
        self.last = time.monotonic()
        self.told = self.latest = ""

    def report(self, what: str, done: int, total: int) -> None:
        """Progress of a task, with a last line if it had others."""
        now = time.monotonic()
        start = self.began.setdefault(what, now)
        seconds = round((now - start) / max(done, 1) * (total - done))
        left = f", about {timedelta(seconds=seconds)} left" if 0 < done < total and now > start else ""
        self.latest = f"{what}: {done:,}/{total:,}{left}" if total > 1 else what
        if now - max(self.last, start) < INTERVAL and not (done == total and self.told == what):
            return
        self.say(self.latest, now)
        self.told = "" if done == total else what

    def watch(self, outlook: "Outlook") -> None:
        """The state of a race; its news at once."""
        now = time.monotonic()
        if outlook.news:
            self.say(outlook.news, now)
        self.latest = f"{_where(outlook)}, {_left(outlook)}"
        if now - self.last >= INTERVAL:
            self.say(self.latest, now)

    def say(self, line: str, now: float) -> None:
        self.console.print(line, markup=False, highlight=False, soft_wrap=True)
        self.last = now

    @contextmanager
    def beating(self) -> Iterator["_Log"]:
        """Repeat the latest line while nothing new is reported."""
        ended = Event()

        def beat() -> None:
            while not ended.wait(INTERVAL):
                if self.latest and (now := time.monotonic()) - self.last >= INTERVAL:
                    self.say(self.latest, now)

        thread = Thread(target=beat, daemon=True)
        thread.start()
        try:
            yield self
        finally:
            ended.set()
            thread.join()


def _where(outlook: "Outlook") -> str:
    methods = "method" if outlook.methods == 1 else "methods"
    return f"{outlook.round}, {outlook.methods} {methods}: {outlook.done:,} of {outlook.runs:,} runs"


def _left(outlook: "Outlook") -> str:
    from crosstail.reports.wording import duration

    return f"about {duration(outlook.left)} left in all"


def after_notes(console: Console, untold: list[str], told: list[str], shown: "Report") -> "Report":
    """Progress that tells notes first: before long work, but not before a mistake that ends the command at once."""

    def report(what: str, done: int, total: int) -> None:
        while untold:
            told.append(untold.pop(0))
            say_all(console, "note", told[-1:])
        shown(what, done, total)

    return report


@contextmanager
def progress_bar(console: Console) -> "Iterator[Report]":
    """Yield a function that takes a task's name, steps done and steps in total; a new name starts a new bar.

    Where there is no terminal, it writes lines.
    """
    with race_progress(console, width=40) as (report, _):
        yield report


@contextmanager
def race_progress(console: Console, width: int = 20) -> "Iterator[tuple[Report, Callable[[Outlook], None]]]":
    """Yield the function of `progress_bar`, and one that shows the outlook of a race."""
    if not console.is_terminal:
        with _Log(console).beating() as log:
            yield log.report, log.watch
        return
    with _bars(console, width) as bars:
        tasks: dict[str, TaskID] = {}
        shown = 0.0

        def begun(what: str, total: int) -> TaskID:
            if what not in tasks:
                for task in tasks.values():
                    bars.update(task, visible=False)
                tasks[what] = bars.add_task(what, total=total)
            return tasks[what]

        def report(what: str, done: int, total: int) -> None:
            nonlocal shown
            task = begun(what, total)
            now = time.monotonic()
            # A step may take 0.3 ms: drawing each one would take longer than the work.
            if now - shown > 0.1 or done == total:
                bars.update(task, completed=done)
                shown = now

        def watch(outlook: "Outlook") -> None:
            if outlook.news:
                console.print(outlook.news, markup=False, highlight=False)
            task = begun(f"{outlook.round}, {outlook.methods} methods", outlook.runs)
            bars.update(task, completed=outlook.done, total=outlook.runs, left=_left(outlook))

        yield report, watch


@contextmanager
def sweep_progress(console: Console, plan: "Plan") -> "Iterator[Callable[[Job, Outcome], None]]":
    """Yield a function that shows a run's outcome: on a terminal in a bar per method, otherwise in a line per run."""
    with _bars(console, 20, TextColumn("{task.fields[failed]}", style="red")) as bars:
        total = plan.runs_per_method + plan.more_per_method
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
