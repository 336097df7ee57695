"""Search each method's hyperparameters, select on validation, and repeat the best trial under several seeds."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosstail.progress import Progress, silent
from crosstail.storage import write_json
from crosstail.sweeps import drive, rules
from crosstail.sweeps import plan as planning
from crosstail.sweeps.estimate import SweepCost
from crosstail.sweeps.estimate import estimate as measure
from crosstail.sweeps.launchers import _launcher
from crosstail.sweeps.plan import Hparams, Plan
from crosstail.sweeps.select import as_file
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome
from crosstail.training.spec import RunSpec
from crosstail.workflows.select import Selected, choose, selected_name

Watch = Callable[[Plan], AbstractContextManager[Callable[[Job, Outcome], None]]]
"""Given the plan before its first run, a context whose function is told every run and its outcome."""


@dataclass(frozen=True)
class Swept(Selected):
    """A sweep that has ended: its best trials, and the accuracy of every method."""

    plan: Plan

    def to_json(self) -> list[dict[str, Any]]:
        """The accuracy of every method with its hyperparameters, with dg for every search."""
        found = []
        for row in self.rows:
            own = as_file([choice for choice in self.chosen if choice.method == row.method])
            found.append(asdict(row) | {"hparams": own.get(row.method, own)})
        return found


@dataclass(frozen=True)
class Estimated:
    """What a sweep would cost."""

    methods: Sequence[SweepCost]
    workers: int
    runs: int
    seconds: float
    """With all workers busy."""
    size: float
    """Bytes of all runs."""

    def to_json(self) -> dict[str, Any]:
        """The sums, and the cost of every method."""
        costs = [asdict(cost) for cost in self.methods]
        return {"runs": self.runs, "hours": self.seconds / 3600, "bytes": self.size, "algorithms": costs}


def sweep(
    spec: RunSpec,
    out: Path,
    *,
    algorithm: Sequence[str],
    trials: int = 20,
    seeds: int = 3,
    hparams: Hparams | None = None,
    launcher: str = "local",
    workers: int | None = None,
    time_limit: float | None = None,
    rule: str | None = None,
    progress: Progress = silent,
    watch: Watch = lambda plan: nullcontext(lambda job, outcome: None),
) -> Swept:
    """Search each method's hyperparameters, select on validation, and repeat the best trial under several seeds.

    With dg, as in DomainBed, every seed repeats the search, and each unseen domain has its own best trial. With folds,
    a trial is trained on every fold and selected by the mean over them.

    Args:
        spec: What all runs share; the sweep sets their methods, hyperparameters and seeds.
        out: Folder of the sweep; running the same again resumes it.
        algorithm: Methods such as boda or boda:retrain, or files.
        trials: Trials per method; the first has the default hyperparameters.
        seeds: Seeds of the trial that is best on validation; with dg, seeds of the whole search.
        hparams: Hyperparameters that are the same in all runs.
        launcher: local: processes on this machine; inline: this process; ray or slurm: a cluster.
        workers: Runs at a time; default: one per GPU, or one per core.
        time_limit: Seconds after which a run counts as failed.
        rule: Select trial and step together, as other benchmarks do: worst_group or no_attribute; with dg also
            leave_one_domain_out, which adds runs that leave out one more domain, and oracle, for comparison only.
        progress: Called while the data are loaded and embedded.
        watch: Told every run and its outcome.
    """
    by, store = rules.find(rule) if rule else None, Store(out)
    plan = planning.make(spec, algorithm, trials=trials, seeds=seeds, hparams=hparams, rule=by)
    with _launcher.launcher(launcher, store, _launcher.Resources(workers, time_limit)) as crew:
        events = drive.sweep(plan, store, crew, progress, rule=by)
        with watch(plan) as tell:
            for job, outcome in events:
                tell(job, outcome)
    chosen, rows = choose(store, plan, rule=by)
    file = out / selected_name(by)
    write_json(file, as_file(chosen if by else choose(store)[0]))
    return Swept(file, chosen, rows, plan)


def estimate(
    spec: RunSpec,
    out: Path,
    *,
    algorithm: Sequence[str],
    launcher: str = "local",
    workers: int | None = None,
    time_limit: float | None = None,
    rule: str | None = None,
    progress: Progress = silent,
    **planned: Any,
) -> Estimated:
    """Estimate the runs, the time and the disk space of a sweep, by its arguments."""
    plan = planning.make(spec, algorithm, rule=rules.find(rule) if rule else None, **planned)
    with _launcher.launcher(launcher, Store(out), _launcher.Resources(workers, time_limit)) as crew:
        costs, seconds = measure(plan, crew.workers, progress)
        runs, size = sum(cost.runs for cost in costs), sum(cost.size for cost in costs)
        return Estimated(costs, crew.workers, runs, seconds, size)
