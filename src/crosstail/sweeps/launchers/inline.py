"""One run after the other in this process: for debugging and tests."""

from collections.abc import Iterator, Sequence

from crosstail.sweeps.launchers._launcher import Launcher, Resources
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome, execute


class Inline(Launcher):
    """Runs in the calling process; it takes no resources, because a process cannot end its own run."""

    workers = 1

    def __init__(self, store: Store, resources: Resources) -> None:
        for name, value in vars(resources).items():
            if value is not None:
                raise ValueError(f"the launcher inline takes no --{name.replace('_', '-')}: use --launcher local")
        self.store = store

    def __exit__(self, *error: object) -> None:
        pass

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        return (execute(self.store, job) for job in jobs)


launcher = Inline
