"""How long work reports its progress."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with the name of the task, the steps done and their total."""


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def labelled(progress: Progress, label: str) -> Progress:
    """Progress in one of several parts, whose label precedes the name of every task."""
    return (lambda what, done, total: progress(f"{label}: {what}", done, total)) if label else progress
