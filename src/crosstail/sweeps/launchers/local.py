"""Worker processes on this machine, kept from run to run, that share its cores and GPUs."""

import os
import queue
import signal
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from multiprocessing import connection, get_all_start_methods, get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any

import torch

from crosstail.machine import cores, use
from crosstail.sweeps.launchers._launcher import Launcher, Resources, after_death
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome, Stopped, execute
from crosstail.training.devices import spare_compiler

GRACE = 5.0  # seconds for a worker to finish its current step once it is asked to stop
READY = Outcome("", "ready")


class Local(Launcher):
    """Worker processes, by default one per GPU or, without GPUs, per core; if one dies, another resumes its run."""

    def __init__(self, store: Store, resources: Resources) -> None:
        self.store, self.time_limit = store, resources.time_limit
        self.workers = resources.workers or len(gpus()) or cores()
        self._context: Any = get_context("forkserver" if "forkserver" in get_all_start_methods() else "spawn")
        # Imported once, before workers are forked, so that they start in milliseconds.
        self._context.set_forkserver_preload(["__main__", __name__])
        self._crew: list[Worker] = []

    def __exit__(self, *error: object) -> None:
        for worker in self._crew:
            worker.connection.close()  # tells the worker to stop
        for worker in self._crew:
            worker.process.join(GRACE + 1)
            worker.end()

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        waiting, deaths = deque(jobs), Counter[str]()
        while len(self._crew) < min(self.workers, len(waiting)):
            self._crew.append(self._hire(len(self._crew)))
        while waiting or any(worker.job for worker in self._crew):
            for worker in self._crew:
                if worker.ready and worker.job is None and waiting:
                    worker.give(waiting.popleft(), self.time_limit)
            for number in self._wait():
                worker = self._crew[number]
                job, outcome = worker.job, worker.take()
                if outcome is None:
                    worker.end()
                    self._crew[number] = self._hire(number)
                    name, overdue = job.spec.key if job else "", self.time_limit if worker.overdue else None
                    deaths[name] += 1
                    outcome = after_death(self.store, job, deaths[name], overdue, "--launcher inline shows why")
                    if outcome is None and job is not None:
                        waiting.appendleft(job)
                if outcome not in (None, READY):
                    yield outcome

    def _wait(self) -> list[int]:
        """Wait for workers that have finished a job or died, and kill those over the time limit."""
        first = min(worker.deadline for worker in self._crew)
        patience = None if first == float("inf") else max(0.0, first - time.monotonic())
        heard = connection.wait([worker.connection for worker in self._crew], patience)
        for worker in self._crew:
            if time.monotonic() > worker.deadline and worker.connection not in heard:
                worker.overdue, worker.deadline = True, float("inf")
                worker.process.kill()
        return [number for number, worker in enumerate(self._crew) if worker.connection in heard]

    def _hire(self, number: int) -> "Worker":
        names = gpus()  # assigned in turn, shared if there are more workers than GPUs
        device = names[number % len(names)] if names else None
        return Worker(self._context, self.store, max(1, cores() // self.workers), device)


class Worker:
    """A process with its current job and deadline."""

    def __init__(self, context: Any, store: Store, threads: int, device: str | None) -> None:
        self.job: Job | None = None
        self.ready = self.overdue = False
        self.deadline = float("inf")
        self.connection: Connection[Job, Outcome]
        self.connection, other = context.Pipe()
        arguments = other, store.path, store.patience, threads, device
        self.process: BaseProcess = context.Process(target=work, args=arguments, name="crosstail-worker")
        self.process.start()
        other.close()

    def give(self, job: Job, time_limit: float | None) -> None:
        self.job = job
        self.deadline = time.monotonic() + (time_limit or float("inf"))
        with suppress(OSError):  # it has died, which `take` will notice
            self.connection.send(job)

    def take(self) -> Outcome | None:
        """The outcome of its job, READY for the first, or None if it died."""
        try:
            outcome = self.connection.recv()
        except (EOFError, OSError):
            return None
        self.ready, self.job, self.deadline = True, None, float("inf")
        return outcome

    def end(self) -> None:
        self.connection.close()
        self.process.kill()
        self.process.join()


def work(connection: "Connection[Outcome, Job]", path: Path, patience: float, threads: int, device: str | None) -> None:
    """Main function of a worker process: execute jobs until the connection is closed or the parent dies."""
    for number in (signal.SIGINT, signal.SIGTERM):  # a terminal sends Ctrl-C to all processes; the parent handles it
        signal.signal(number, signal.SIG_IGN)
    if device is not None:
        os.environ["CUDA_VISIBLE_DEVICES"] = device
    torch.set_num_threads(threads)
    use(threads)
    spare_compiler()
    store, stopped = Store(path, patience), threading.Event()
    jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()

    def listen() -> None:
        with suppress(EOFError, OSError):
            while True:
                jobs.put(connection.recv())
        stopped.set()
        jobs.put(None)
        time.sleep(GRACE)
        os._exit(1)

    threading.Thread(target=listen, daemon=True).start()
    with suppress(Stopped, OSError):
        connection.send(READY)
        for job in iter(jobs.get, None):
            connection.send(execute(store, job, stopped.is_set))


def gpus() -> list[str]:
    """The GPUs available to this process, as CUDA_VISIBLE_DEVICES names them."""
    if "CUDA_VISIBLE_DEVICES" in os.environ:
        return [name for name in os.environ["CUDA_VISIBLE_DEVICES"].split(",") if name]
    return [str(number) for number in range(torch.cuda.device_count())]


launcher = Local
