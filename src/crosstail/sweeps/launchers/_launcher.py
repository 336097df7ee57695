"""The interface of a launcher: it calls `execute` for each job, here, in other processes, or on other machines."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from crosstail import discovery
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome, give_up

DEATHS = 10  # of workers on the same run, after which the run counts as failed


@dataclass(frozen=True)
class Resources:
    """Number of runs at once (None: chosen by the launcher), and time limit of each in seconds."""

    workers: int | None = None
    time_limit: float | None = None

    def __post_init__(self) -> None:
        if self.workers is not None and self.workers < 1:
            raise ValueError(f"--workers is {self.workers}, expected 1 or more")


class Launcher(AbstractContextManager["Launcher"], Protocol):
    """A file `NAME.py` of this package has a `launcher(store, resources)` that returns one of these.

    `run` may be called any number of times inside the context; leaving it, also by Ctrl-C, ends everything that was
    started. A job whose worker dies goes to another one, which resumes from the checkpoint. A launcher is stateless:
    everything that must survive is in the store.
    """

    workers: int  # runs at once

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Execute jobs in roughly this order, and yield each outcome as soon as it is known."""
        ...


def after_death(store: Store, job: Job | None, deaths: int, overdue: float | None, hint: str) -> Outcome | None:
    """The outcome of a job whose worker died, or was `overdue` (its limit); None if another worker is to resume it."""
    if job is None and deaths == DEATHS:
        raise OSError(f"{DEATHS} workers have died without a job: {hint}")
    if job is not None and overdue is not None:
        return give_up(store, job, "time limit", f"took longer than {overdue:g} s")
    if job is not None and deaths == DEATHS:
        return give_up(store, job, "died", f"its worker died {DEATHS} times; out of memory?")
    return None


def launcher(name: str, store: Store, resources: Resources) -> Launcher:
    """A launcher by its name."""
    return discovery.find("crosstail.sweeps.launchers", name, "launcher").launcher(store, resources)
