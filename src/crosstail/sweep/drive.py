"""From a plan to its results: trials, selection, and the chosen trials with several seeds."""

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from crosstail.data import DomainDataset
from crosstail.sweep import search
from crosstail.sweep.launchers._launcher import Launcher
from crosstail.sweep.plan import Plan
from crosstail.sweep.select import choices
from crosstail.sweep.store import Store
from crosstail.sweep.worker import Job, Outcome
from crosstail.training.inputs import input_shape, load_inputs, load_source
from crosstail.training.model import build_algorithm
from crosstail.training.progress import Progress
from crosstail.training.result import DataFacts
from crosstail.training.spec import RunSpec

POLL = 0.5  # seconds between two checks of runs that other processes work on

Event = tuple[Job, Outcome]


def sweep(plan: Plan, store: Store, launcher: Launcher, progress: Progress | None = None) -> Iterator[Event]:
    """Execute the runs of a plan that are not finished; yield every run with its outcome as soon as it is known.

    Runs that were finished before come first, as "kept". A run that failed before is tried once more. Progress is
    reported while the data are loaded, before the first run; data that have changed since the sweep was started are
    refused.
    """
    store.add(plan)
    store.tidy()
    if _unfinished(plan, store):
        source = load_source(plan.shared)
        store.check_data(plan.shared.dataset, DataFacts.of(source))
        check(plan, source, progress)
    return _events(plan, store, launcher)


def _unfinished(plan: Plan, store: Store) -> bool:
    """Whether any run is left to do; pruned ones are not repeated."""
    pruned = {key for key, failure in store.failures().items() if failure.kind == "pruned"}

    def left(specs: Iterable[RunSpec]) -> bool:
        return not all(store.has(spec.key) or spec.key in pruned for spec in specs)

    for method in plan.methods:
        trials = store.trials(plan, method)
        if len(trials) < plan.trials or any(left(plan.runs(method, hparams)) for hparams in trials):
            return True
    chosen = [choice for choice in choices(store, store.results(), plan) if choice.trial is not None]
    return any(left(specs) for choice in chosen for specs in plan.finals(choice.method, choice.hparams))


def _events(plan: Plan, store: Store, launcher: Launcher) -> Iterator[Event]:
    yield from _trials(plan, store, launcher)
    jobs = []
    for choice in choices(store, store.results(), plan):
        if choice.trial is not None:
            for seed, specs in enumerate(plan.finals(choice.method, choice.hparams)):
                jobs += [Job(spec, f"seed {seed}") for spec in specs if seed > 0]
    yield from complete(store, launcher, _by_data(plan, jobs))


def check(plan: Plan, source: DomainDataset, progress: Progress | None = None) -> None:
    """Report a mistake once instead of in every run, and embed images here instead of in every worker."""
    dataset = load_inputs(plan.runs(plan.methods[0], {})[0], source).seen(progress)
    for method in plan.methods:
        build_algorithm(plan.runs(method, {})[0], input_shape(dataset), dataset.counts("train"))


def _trials(plan: Plan, store: Store, launcher: Launcher) -> Iterator[Event]:
    """Run the known trials, then those that the search proposes."""
    begun = dict.fromkeys(plan.methods, 0)
    while True:
        jobs = []
        for method in plan.methods:
            trials = store.trials(plan, method)
            for trial in range(begun[method], len(trials)):
                specs = plan.runs(method, trials[trial])
                limits = search.limits(plan, method, store, trial)
                jobs += [Job(spec, f"trial {trial}", limits=limits) for spec in specs]
            begun[method] = len(trials)
        yield from complete(store, launcher, _by_data(plan, jobs))
        if all(count == plan.trials for count in begun.values()):
            return
        for method in plan.methods:
            if begun[method] < plan.trials:
                known = begun[method] - 1
                store.propose(method, known, search.propose(plan, method, store, known))


def _by_data(plan: Plan, jobs: Sequence[Job]) -> list[Job]:
    """Sort jobs so that runs on the same data follow each other: workers cache their data."""
    return sorted(jobs, key=lambda job: plan.unseen.index(job.spec.unseen))


def complete(store: Store, launcher: Launcher, jobs: Sequence[Job]) -> Iterator[Event]:
    """Wait until every job is done or has failed, by this launcher or by other processes on the same folder."""
    pending = {job.spec.key: job for job in jobs}
    before = {key: failure.attempts for key, failure in store.failures().items()}
    how = "kept"
    while True:
        failures, folders = store.failures(), store.unfinished()
        for key, job in list(pending.items()):
            failure = failures.get(key)
            if store.has(key):
                yield pending.pop(key), Outcome(key, how)
            elif failure is not None and (failure.kind == "pruned" or failure.attempts > before.get(key, 0)):
                yield job, Outcome(key, "pruned" if failure.kind == "pruned" else "failed", failure.error)
                del pending[key]
        ready = []
        for key, job in pending.items():
            lost = tuple(folder.name for folder in folders.get(key, []) if store.abandoned(folder))
            if len(lost) == len(folders.get(key, [])):
                ready.append(replace(job, lost=lost))
        for outcome in launcher.run(ready):
            if outcome.how != "busy":
                yield pending.pop(outcome.key), outcome
        if not pending:
            return
        how = "done"
        time.sleep(POLL)
