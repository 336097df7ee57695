"""Slurm job arrays: each task of an array works on what is left of the sweep; the store shows their progress."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from crosstail.machine import cores
from crosstail.sweeps.launchers._launcher import DEATHS, Launcher, Resources
from crosstail.sweeps.launchers.local import Local
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome, give_up

try:
    import submitit
except ModuleNotFoundError:
    raise ValueError("--launcher slurm needs submitit: pip install 'crosstail[slurm]'") from None

WORKERS = 8  # default number of tasks per array
CHECK = 10.0  # seconds between two queries of the queue


class Slurm(Launcher):
    """Submits an array for new jobs, and another one for those that it leaves unfinished."""

    def __init__(self, store: Store, resources: Resources) -> None:
        if shutil.which("srun") is None or shutil.which("sbatch") is None:
            raise ValueError("--launcher slurm needs sbatch and srun: run the command on a login node of the cluster")
        self.store, self.workers, self.time_limit = store, resources.workers or WORKERS, resources.time_limit
        self._arrays: list[str] = []
        self._given: set[str] = set()
        self._fruitless = 0
        self._checked = 0.0

    def __exit__(self, *error: object) -> None:
        if self._arrays:
            subprocess.run(["scancel", "--quiet", *self._arrays], check=False)

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """Make sure that there is an array for these jobs; their outcomes are found in the store."""
        keys = {job.spec.key for job in jobs}
        if keys <= self._given and (not keys or self._at_work()):
            return
        self._fruitless = self._fruitless + 1 if keys == self._given else 0
        if self._fruitless < DEATHS:
            self._submit(jobs)
            self._given = keys
            return
        logs = self.store.path / "slurm"
        for job in jobs:
            yield give_up(self.store, job, "died", f"{DEATHS} job arrays ended without it: see {logs}")

    def _submit(self, jobs: Sequence[Job]) -> None:
        executor = submitit.SlurmExecutor(self.store.path.absolute() / "slurm")
        # No time limit of ours: the partition's or SBATCH_TIMELIMIT applies.
        executor.update_parameters(job_name="crosstail", cpus_per_task=1, time=None)
        attempts = {key: failure.attempts for key, failure in self.store.failures().items()}
        arguments = self.store.path.absolute(), self.store.patience, jobs, attempts, self.time_limit
        try:
            with executor.batch():
                tasks = [executor.submit(work, *arguments) for _ in range(min(self.workers, len(jobs)))]
        except submitit.core.utils.FailedJobError as error:
            raise OSError(str(error).strip().splitlines()[-1]) from None
        self._arrays.append(tasks[0].job_id.partition("_")[0])
        self._checked = time.monotonic()

    def _at_work(self) -> bool:
        """Whether the last array is pending or running, as far as is known."""
        if time.monotonic() - self._checked < CHECK:
            return True
        self._checked = time.monotonic()
        command = ["squeue", "--noheader", "--jobs", self._arrays[-1]]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        forgotten = "Invalid job id" in answer.stderr
        return bool(answer.stdout.strip()) if answer.returncode == 0 else not forgotten


def work(path: Path, patience: float, jobs: Sequence[Job], attempts: dict[str, int], time_limit: float | None) -> None:
    """Main function of an array task: execute all jobs but those that have failed since it was submitted."""
    for number in (signal.SIGTERM, signal.SIGUSR2):  # sent by scancel, and before the time limit
        signal.signal(number, lambda *_: sys.exit(1))
    store = Store(path, patience)
    with Local(store, Resources(cores(), time_limit)) as crew:  # as many workers as cores, so that a run has one thread
        for job in jobs:
            failure = store.failures().get(job.spec.key)
            if failure is None or failure.attempts == attempts.get(job.spec.key):
                list(crew.run([job]))


launcher = Slurm
