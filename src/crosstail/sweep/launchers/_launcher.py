"""What a launcher is: whoever calls `execute` for each job, here, in other processes, or on other machines."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

from crosstail import discovery
from crosstail.sweep.store import Store
from crosstail.sweep.worker import Job, Outcome


@dataclass(frozen=True)
class Resources:
    """What the user grants: so many runs at once (None: as many as suit), and so many seconds for each."""

    workers: int | None = None
    time_limit: float | None = None


class Launcher(Protocol):
    """A file `NAME.py` of this package has a `launcher(store, resources)` that returns one of these.

    It is entered once, given jobs any number of times, and left, also by Ctrl-C: then whatever it has started ends.
    A job whose worker dies is given to another one, which goes on from the checkpoint. What must survive is in the
    store, so a launcher keeps nothing.
    """

    workers: int  # how many runs go on at once

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Do these jobs, in about this order, and give each outcome when it is known."""
        ...


def launcher(name: str, store: Store, resources: Resources) -> Launcher:
    """A launcher by its name."""
    made: Launcher = discovery.find("crosstail.sweep.launchers", name, "launcher").launcher(store, resources)
    return made
