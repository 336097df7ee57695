"""Actors on a Ray cluster: the one at $RAY_ADDRESS, or a temporary one on this machine."""

import logging
import math
import os
import secrets
import tempfile
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from crosstail.machine import cores

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

MEMORY = 100 * 2**20  # bytes of the object store of a temporary cluster
GRACE = 5.0  # seconds for an actor to finish its current step once it is asked to stop
DEATHS = 10  # of actors on the same rows, after which the work ends
BLOCK = 1024  # rows of one call at most
SHARE = 8  # calls per actor if there are few rows, so that all actors end at about the same time

Job = TypeVar("Job")
Rows = NDArray[np.int64]


class Call(NamedTuple):
    """A pending call to an actor with its deadline; without a job, a health check."""

    answer: Any
    actor: Any
    job: Any = None
    deadline: float = math.inf

    @property
    def overdue(self) -> bool:
        return time.monotonic() > self.deadline


class Died(NamedTuple):
    """Stands in for the answer of an actor that died; `overdue` if it was killed at its time limit."""

    why: str
    overdue: bool


class Actors(AbstractContextManager["Actors[Job]"], Generic[Job]):
    """Actors of one class, with one CPU and a share of a GPU each; one that dies is replaced.

    The class has the methods `hello()`, `do(job)` and `stop()`, which asks it to end its job.
    """

    def __init__(self, kind: type, arguments: tuple[Any, ...], workers: int | None, time_limit: float | None = None):
        self.time_limit = time_limit
        self._kind: Any = kind
        self._arguments = arguments
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
        self._kind = ray.remote(self._kind).options(num_cpus=1, num_gpus=share, max_concurrency=2)
        self._arguments = tuple(map(ray.put, self._arguments))
        return self

    def __exit__(self, *error: object) -> None:
        with self._exit:
            at_work = [call for call in self._calls if call.job is not None]
            for call in at_work:
                call.actor.stop.remote()
            if at_work:
                ray.wait([call.answer for call in at_work], num_returns=len(at_work), timeout=GRACE)
            for actor in [*self._idle, *(call.actor for call in self._calls)]:
                ray.kill(actor)

    def answers(self, waiting: deque[Job]) -> Iterator[tuple[Job | None, Any]]:
        """Do the jobs; yield each with its answer as soon as it is known, or with `Died`.

        The caller may put the job of a dead actor back into the queue; without a job, the actor died before it had
        one. An exception in `do` is raised here.
        """
        for _ in range(len(self._idle) + len(self._calls), min(self.workers, len(waiting))):
            self._hire()
        while waiting or any(call.job is not None for call in self._calls):
            while waiting and self._idle:
                actor, job = self._idle.pop(), waiting.popleft()
                deadline = time.monotonic() + (self.time_limit or math.inf)
                self._calls.append(Call(actor.do.remote(job), actor, job, deadline))
            for call in self._wait():
                try:
                    answer = ray.get(call.answer)
                except RayTaskError as error:
                    raise error.cause from None
                except RayError as error:
                    ray.kill(call.actor)
                    self._hire()
                    why = f"is crosstail on all machines of the Ray cluster? {str(error).splitlines()[-1]}"
                    yield call.job, Died(why, call.overdue)
                else:
                    self._idle.append(call.actor)
                    if call.job is not None:
                        yield call.job, answer

    def _hire(self) -> None:
        actor = self._kind.remote(*self._arguments)
        self._calls.append(Call(actor.hello.remote(), actor))

    def _wait(self) -> list[Call]:
        """Wait for calls that have been answered or have failed, and kill actors over the time limit."""
        first = min(call.deadline for call in self._calls)
        patience = None if first == math.inf else max(0.1, first - time.monotonic())
        answers, _ = ray.wait([call.answer for call in self._calls], timeout=patience)
        heard = [call for call in self._calls if call.answer in answers]
        self._calls = [call for call in self._calls if call.answer not in answers]
        for call in self._calls:
            if call.overdue:
                ray.kill(call.actor)
        return heard


class RowWorker:
    """An actor that computes something for some rows at a time."""

    def __init__(self, make: Callable[[], Callable[[Rows], Any]], folder: Path) -> None:
        os.chdir(folder)
        self._function = make()

    def hello(self) -> None:
        """Answer a health check."""

    def do(self, rows: range) -> Any:
        return self._function(np.arange(rows.start, rows.stop))

    def stop(self) -> None:
        """Rows take seconds: there is no need to stop."""


def map_rows(
    make: Callable[[], Callable[[Rows], Any]],
    total: int,
    *,
    batch: int,
    workers: int | None,
    wanted: Callable[[range], bool] = bool,
) -> Iterator[tuple[slice, Any]]:
    """Wanted blocks of the rows 0 … total - 1, with what `make()` returns for them on an actor, as they finish.

    A block has whole batches, the same as in one process: a network's last digits depend on the batch.
    Rows whose actor dies go to another one.
    """
    with Actors[range](RowWorker, (make, Path.cwd()), workers) as actors:
        size = batch * math.ceil(min(BLOCK, total / (SHARE * actors.workers)) / batch)
        blocks = (range(start, min(start + size, total)) for start in range(0, total, size))
        waiting = deque(filter(wanted, blocks))
        deaths = Counter[range | None]()
        for rows, answer in actors.answers(waiting):
            if isinstance(answer, Died):
                deaths[rows] += 1
                if deaths[rows] == DEATHS:
                    where = f"on rows {rows.start} to {rows.stop - 1}" if rows else "without work"
                    raise OSError(f"{DEATHS} workers have died {where}: {answer.why}")
                if rows is not None:
                    waiting.appendleft(rows)
            elif rows is not None:
                yield slice(rows.start, rows.stop), answer
