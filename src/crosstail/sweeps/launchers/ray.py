"""Actors on a Ray cluster, kept from run to run."""

import os
import threading
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

import torch

from crosstail.ray_actors import Actors, Died
from crosstail.sweeps.launchers._launcher import Launcher, Resources, after_death
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome, execute
from crosstail.training.devices import spare_compiler


class Ray(Launcher):
    """Actors, by default one per GPU of the cluster, or per CPU without GPUs; the run of one that dies is resumed."""

    def __init__(self, store: Store, resources: Resources) -> None:
        self.store, arguments = store, (store.path.absolute(), store.patience, Path.cwd())
        self.actors = Actors[Job](RayWorker, arguments, resources.workers, resources.time_limit)

    def __enter__(self) -> Self:
        self.actors.__enter__()
        self.workers = self.actors.workers
        return self

    def __exit__(self, *error: object) -> None:
        self.actors.__exit__(*error)

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        waiting, deaths = deque(jobs), Counter[str]()
        for job, outcome in self.actors.answers(waiting):
            key = job.spec.key if job else ""
            if not isinstance(outcome, Died):
                deaths[key] = 0
                yield outcome
                continue
            deaths[key] += 1
            if job is not None:
                # Other machines could not detect that its folders are abandoned.
                job = replace(job, lost=tuple(folder.name for folder in self.store.unfinished().get(key, [])))
            limit = self.actors.time_limit if outcome.overdue else None
            given_up = after_death(self.store, job, deaths[key], limit, outcome.why)
            if given_up is not None:
                yield given_up
            elif job is not None:
                waiting.appendleft(job)


class RayWorker:
    """An actor: a process that executes jobs."""

    def __init__(self, path: Path, patience: float, folder: Path) -> None:
        os.chdir(folder)
        spare_compiler()
        self._store = Store(path, patience)
        self._stopped = threading.Event()

    def hello(self) -> None:
        """Answer a health check."""

    def do(self, job: Job) -> Outcome:
        torch.set_num_threads(1)
        return execute(self._store, job, self._stopped.is_set)

    def stop(self) -> None:
        """End the job, so that others can resume it at once."""
        self._stopped.set()


launcher = Ray
