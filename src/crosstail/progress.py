"""How long work reports that it advances."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""Called with a word for the work, how much of it is done, and how much there is."""


def silent(what: str, done: int, total: int) -> None:
    """Report nothing."""


def labelled(progress: Progress, label: str) -> Progress:
    """Progress in one of several parts of the work, whose label stands before every word."""
    return (lambda what, done, total: progress(f"{label}: {what}", done, total)) if label else progress
