"""Actors on a Ray cluster, kept from run to run: the cluster at $RAY_ADDRESS, or a temporary one on this machine."""

import logging
import math
import os
import secrets
import tempfile
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Self

import torch

from crosstail.sweep.launchers._launcher import Launcher, Resources, after_death
from crosstail.sweep.launchers.local import GRACE, cores
from crosstail.sweep.store import Store
from crosstail.sweep.worker import Job, Outcome, execute
from crosstail.training.devices import spare_compiler

ADDRESS = "RAY_ADDRESS"
OWN = {  # settings of a temporary cluster; some are read when Ray is imported
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # listen on this machine only, on every system
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),  # otherwise Ray leaves one in the home folder
}
if not os.environ.get(ADDRESS):
    os.environ.update(OWN | os.environ)

try:
    import ray
    from ray.exceptions import RayError, RayTaskError
except ModuleNotFoundError:
    raise ValueError("--launcher ray needs Ray: pip install 'crosstail[ray]'") from None

MEMORY = 100 * 2**20  # bytes of the object store: jobs and outcomes are small


class Call(NamedTuple):
    """A pending call to an actor with its deadline; without a job, a health check."""

    answer: Any
    actor: Any
    job: Job | None = None
    deadline: float = math.inf


class Ray(Launcher):
    """Actors with one CPU and a share of a GPU each; one that dies is replaced, and its run resumed."""

    def __init__(self, store: Store, workers: int | None, time_limit: float | None) -> None:
        self.store = store
        self.time_limit = time_limit
        self._asked = workers
        self._calls: list[Call] = []
        self._idle: list[Any] = []
        self._exit = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as started:
            settings: dict[str, Any] = {}
            if not os.environ.get(ADDRESS):
                # Ray puts sockets there, and their paths must be short.
                place = tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp" if os.name == "posix" else None)
                settings = {"address": "local", "_temp_dir": started.enter_context(place), "include_dashboard": False}
                settings |= {"num_cpus": self._asked or cores(), "object_store_memory": MEMORY}
            started.callback(ray.shutdown)
            ray.init(log_to_driver=False, logging_level=logging.ERROR, **settings)
            total = ray.cluster_resources()  # type: ignore[no-untyped-call]
            self._exit = started.pop_all()
        gpus = int(total.get("GPU", 0))
        self.workers = self._asked or gpus or int(total["CPU"])
        share = 1 / math.ceil(self.workers / gpus) if gpus else 0
        # The second thread receives the request to stop.
        self._kind: Any = ray.remote(RayWorker).options(num_cpus=1, num_gpus=share, max_concurrency=2)
        return self

    def __exit__(self, *error: object) -> None:
        with self._exit:
            at_work = [call for call in self._calls if call.job]
            for call in at_work:
                call.actor.stop.remote()
            if at_work:
                ray.wait([call.answer for call in at_work], num_returns=len(at_work), timeout=GRACE)
            for actor in [*self._idle, *(call.actor for call in self._calls)]:
                ray.kill(actor)

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        waiting, deaths = deque(jobs), Counter[str]()
        for _ in range(len(self._idle) + len(self._calls), min(self.workers, len(jobs))):
            self._hire()
        while waiting or any(call.job for call in self._calls):
            while waiting and self._idle:
                actor, given = self._idle.pop(), waiting.popleft()
                deadline = time.monotonic() + (self.time_limit or math.inf)
                self._calls.append(Call(actor.do.remote(given), actor, given, deadline))
            for call in self._wait():
                key = call.job.spec.key if call.job else ""
                try:
                    outcome = ray.get(call.answer)
                except RayTaskError:
                    raise
                except RayError as error:
                    ray.kill(call.actor)
                    self._hire()
                    deaths[key] += 1
                    # Other machines could not detect that its folders are abandoned.
                    lost = tuple(folder.name for folder in self.store.unfinished().get(key, []))
                    job = replace(call.job, lost=lost) if call.job else None
                    overdue = self.time_limit if time.monotonic() > call.deadline else None
                    hint = f"is crosstail on all machines of the Ray cluster? {str(error).splitlines()[-1]}"
                    outcome = after_death(self.store, job, deaths[key], overdue, hint)
                    if outcome is None and job is not None:
                        waiting.appendleft(job)
                else:
                    deaths[key] = 0
                    self._idle.append(call.actor)
                if outcome is not None:
                    yield outcome

    def _hire(self) -> None:
        actor = self._kind.remote(self.store.path.absolute(), self.store.patience, Path.cwd())
        self._calls.append(Call(actor.hello.remote(), actor))

    def _wait(self) -> list[Call]:
        """Wait for calls that have been answered or have failed, and kill actors over the time limit."""
        first = min(call.deadline for call in self._calls)
        patience = None if first == math.inf else max(0.1, first - time.monotonic())
        answers, _ = ray.wait([call.answer for call in self._calls], timeout=patience)
        heard = [call for call in self._calls if call.answer in answers]
        self._calls = [call for call in self._calls if call.answer not in answers]
        for call in self._calls:
            if time.monotonic() > call.deadline:
                ray.kill(call.actor)
        return heard


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


def launcher(store: Store, resources: Resources) -> Ray:
    """A Ray launcher, by default with one actor per GPU of the cluster, or per CPU without GPUs."""
    return Ray(store, resources.workers, resources.time_limit)
