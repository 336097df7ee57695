"""Job arrays of Slurm: each task of an array does what is left of the sweep, and the store tells how far they are."""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

from crosstail.sweep.launchers._launcher import Resources
from crosstail.sweep.launchers.local import DEATHS, Local, cores
from crosstail.sweep.store import Store
from crosstail.sweep.worker import Job, Outcome, give_up

try:
    import submitit
except ModuleNotFoundError:
    raise ValueError("--launcher slurm needs submitit: pip install 'crosstail[slurm]'") from None

WORKERS = 8  # tasks of an array, if nobody says how many
CHECK = 10.0  # seconds between two questions whether an array is still there


class Slurm(AbstractContextManager["Slurm"]):
    """An array for jobs that are new, and another one for those that it leaves behind."""

    def __init__(self, store: Store, workers: int, time_limit: float | None) -> None:
        self.store = store
        self.workers = workers
        self.time_limit = time_limit
        self._arrays: list[str] = []
        self._given: set[str] = set()
        self._in_vain = 0
        self._checked = 0.0

    def __exit__(self, *error: object) -> None:
        if self._arrays:
            subprocess.run(["scancel", "--quiet", *self._arrays], check=False)

    def run(self, jobs: Sequence[Job]) -> Iterator[Outcome]:
        """See to it that there is an array for these jobs; what becomes of them is found in the store."""
        keys = {job.spec.key for job in jobs}
        if keys <= self._given and (not keys or self._at_work()):
            return
        self._in_vain = self._in_vain + 1 if keys == self._given else 0
        if self._in_vain < DEATHS:
            self._submit(jobs)
            self._given = keys
            return
        logs = self.store.path / "slurm"
        for job in jobs:
            yield give_up(self.store, job, "died", f"{DEATHS} job arrays ended without it: see {logs}")

    def _submit(self, jobs: Sequence[Job]) -> None:
        executor = submitit.SlurmExecutor(self.store.path.absolute() / "slurm")
        # No time limit: that of the partition, or what SBATCH_TIMELIMIT says.
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
        """Whether the last array waits or runs, as far as one knows."""
        if time.monotonic() - self._checked < CHECK:
            return True
        self._checked = time.monotonic()
        command = ["squeue", "--noheader", "--jobs", self._arrays[-1]]
        answer = subprocess.run(command, capture_output=True, text=True, check=False)
        forgotten = "Invalid job id" in answer.stderr
        return bool(answer.stdout.strip()) if answer.returncode == 0 else not forgotten


def work(path: Path, patience: float, jobs: Sequence[Job], attempts: dict[str, int], time_limit: float | None) -> None:
    """What a task of an array does: one job after the other, but for those that have failed since it was submitted."""
    for number in (signal.SIGTERM, signal.SIGUSR2):  # scancel, and the end of the time
        signal.signal(number, lambda *_: sys.exit(1))
    store = Store(path, patience)
    with Local(store, cores(), time_limit) as crew:  # so that a run has one thread
        for job in jobs:
            failure = store.failures().get(job.spec.key)
            if failure is None or failure.attempts == attempts.get(job.spec.key):
                list(crew.run([job]))


def launcher(store: Store, resources: Resources) -> Slurm:
    """A machine from which one can submit to Slurm."""
    if shutil.which("srun") is None or shutil.which("sbatch") is None:
        raise ValueError("--launcher slurm needs sbatch and srun: give the command on a login node of the cluster")
    workers = WORKERS if resources.workers is None else resources.workers
    if workers < 1:
        raise ValueError(f"--workers is {workers}, expected 1 or more")
    return Slurm(store, workers, resources.time_limit)
