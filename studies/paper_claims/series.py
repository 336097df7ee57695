"""Run what the records lack, with the machinery of a sweep."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from studies.paper_claims.records import Records, distil, words

from crosstail.sweep.drive import complete
from crosstail.sweep.launchers._launcher import Launcher
from crosstail.sweep.plan import Plan, draw
from crosstail.sweep.select import SelectedTrial, choose
from crosstail.sweep.store import Failure, Store
from crosstail.sweep.worker import Job, inputs
from crosstail.training import RunSpec
from crosstail.training.folder import RunFolder


@dataclass(frozen=True)
class Bench:
    """Where the data are, what runs them, where runs are stored, and the records."""

    data: Path
    store: Store
    launcher: Launcher
    records: Records

    def run(self, specs: Iterable[RunSpec], look: bool = False) -> None:
        """Do the runs that the records lack; with `look`, also measure their features."""
        wanted = {spec.key: spec for spec in specs if not self.records.has(spec.key, look)}
        named = {}
        for spec in wanted.values():
            here = replace(spec, dataset=str(self.data))
            named[here.key] = spec, Job(here)
        for first in {spec.labels: job.spec for spec, job in named.values() if spec.freeze}.values():
            inputs(first).seen()  # embeds once what every worker would
        for job, outcome in complete(self.store, self.launcher, [job for _, job in named.values()]):
            spec, _ = named[job.spec.key]
            if outcome.how == "failed":
                self.records.add({**words(spec), "failed": outcome.error[-1:]})
            else:
                self.records.add(distil(spec, RunFolder(self.store.path / "runs" / job.spec.key), look))
            print(f"{outcome.how}: {' '.join(map(str, _shown(spec)))}", flush=True)


def _shown(spec: RunSpec) -> Sequence[object]:
    return spec.algorithm, spec.labels or spec.unseen, spec.hparams, f"seed {spec.seed}"


def plan_of(shared: RunSpec, entries: Sequence[str], unseen: tuple[str | None, ...], trials: int, seeds: int) -> Plan:
    """A plan whose trials are those of a random search, made without the data."""
    drawn = {entry: tuple(draw(entry, range(trials), shared)) for entry in entries}
    return Plan(shared=shared, methods=tuple(entries), unseen=unseen, trials=trials, seeds=seeds, drawn=drawn)


def chosen(plan: Plan, entry: str, stage: int, records: Records) -> SelectedTrial:
    """The trial that is best on validation at the end of a stage; test accuracy is not looked at."""
    failures = {key: Failure("error", r["failed"], 1) for key, r in records.runs.items() if "failed" in r}
    return choose(plan, entry, plan.drawn[entry], records.validation(stage), failures)


def search(bench: Bench, plan: Plan, look: bool = False) -> None:
    """Every trial of a plan, then the best of each stage with all seeds."""
    trials = [plan.runs(entry, plan.drawn[entry][trial]) for trial in range(plan.trials) for entry in plan.methods]
    bench.run([spec for specs in trials for spec in specs])
    best = [chosen(plan, entry, stage, bench.records) for entry in plan.methods for stage in (1, 2)]
    finals = [plan.finals(choice.method, choice.hparams) for choice in best if choice.trial is not None]
    bench.run([spec for seeds in finals for specs in seeds for spec in specs], look)
