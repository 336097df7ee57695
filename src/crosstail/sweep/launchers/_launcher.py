"""The interface of a launcher: it calls `execute` for each job, here, in other processes, or on other machines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from crosstail import discovery
from crosstail.sweep.store import Store
from crosstail.sweep.worker import Job, Outcome


@dataclass(frozen=True)
class Resources:
    """Number of runs at once (None: chosen by the launcher), and time limit of each in seconds."""

    workers: int | None = None
    time_limit: float | None = None


class Launcher(Protocol):
    """A file `NAME.py` of this package has a `launcher(store, resources)` that returns one of these.

    It is a context manager: `run` may be called any number of times inside, and leaving it, also by Ctrl-C, ends
    everything that it started. A job whose worker dies goes to another one, which resumes from the checkpoint. A
    launcher is stateless: everything that must survive is in the store.
    """

    workers: int  # runs at once

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Execute jobs in roughly this order, and yield each outcome as soon as it is known."""
        ...


def launcher(name: str, store: Store, resources: Resources) -> Launcher:
    """A launcher by its name."""
    made: Launcher = discovery.find("crosstail.sweep.launchers", name, "launcher").launcher(store, resources)
    return made
