"""Execute a plan: trials, selection, and the selected trials with the other seeds."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from crosstail.data import DomainDataset, load_source
from crosstail.progress import Progress
from crosstail.sweeps.first_stages import with_first_stages
from crosstail.sweeps.launchers._launcher import Launcher
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.rules import Rule
from crosstail.sweeps.select import choices
from crosstail.sweeps.store import Store
from crosstail.sweeps.worker import Job, Outcome, data_key
from crosstail.training.data_facts import DataFacts
from crosstail.training.model import build_algorithm
from crosstail.training.run_data import input_shape, load_inputs

POLL = 0.5  # seconds between two checks of runs that other processes work on

Event = tuple[Job, Outcome]


def sweep(
    plan: Plan,
    store: Store,
    launcher: Launcher,
    progress: Progress | None = None,
    *,
    keep: bool = True,
    rule: Rule | None = None,
) -> Iterator[Event]:
    """Execute the unfinished runs of a plan; yield every run with its outcome as soon as it is known.

    Runs that were finished before come first, as "kept". A run that failed before is tried once more. The data are
    loaded before the first run, with progress; data that have changed since the sweep was started are refused, also
    if no run is left to do. Without `keep`, the chosen runs do not store the probabilities of held-out samples. With a
    `rule`, trials are chosen by it.
    """
    store.check_plan(plan)
    store.tidy()
    source = load_source(plan.shared)
    facts = DataFacts.of(source)
    store.check_data(plan.shared.dataset, facts)
    if _unfinished(plan, store, rule):
        check(plan, source, progress)
    store.add(plan, facts)  # only now: a mistake must not leave a folder behind
    return _events(plan, store, launcher, keep, rule)


def _unfinished(plan: Plan, store: Store, rule: Rule | None) -> bool:
    """Whether any run is left to do."""
    if not all(store.has(job.spec.key) for job in trials(plan)):
        return True
    chosen = choices(store, store.results(), plan, rule=rule)
    return not all(store.has(key) for choice in chosen for own in choice.finals() for key in own)


def trials(plan: Plan, keep: bool = False) -> list[Job]:
    """The runs of all trials, which `keep` probabilities if they are the final ones, and those that leave out two."""
    found, more = list[Job](), dict[str, Job]()
    for part in plan.searches:
        for method in plan.methods:
            for trial, hparams in enumerate(part.drawn[method]):
                name = f"trial {trial}"
                found += [Job(spec, name, keep=keep and plan.trials == 1) for spec in part.runs(method, hparams)]
                more |= {spec.key: Job(spec, name) for spec in part.leaving_two(method, hparams)}
    return [*found, *more.values()]


def _events(plan: Plan, store: Store, launcher: Launcher, keep: bool, rule: Rule | None) -> Iterator[Event]:
    yield from complete(store, launcher, trials(plan, keep))
    first, jobs = [], []
    for choice in choices(store, store.results(), plan, rule=rule):
        if choice.trial is not None:
            trial, *others = choice.plan.finals(choice.method, choice.hparams)
            first += [Job(spec, f"trial {choice.trial}", keep=keep) for spec in trial]
            jobs += [Job(spec, f"seed {spec.seed}", keep=keep) for specs in others for spec in specs]
    for _ in complete(store, launcher, first):  # done before, without their probabilities
        pass
    yield from complete(store, launcher, jobs)


def check(plan: Plan, source: DomainDataset, progress: Progress | None = None) -> None:
    """Report mistakes once instead of in every run, and embed images here instead of in every worker."""
    dataset = load_inputs(plan.runs(plan.methods[0], {})[0], source).embedded(progress)
    for method in plan.methods:
        build_algorithm(plan.runs(method, {})[0], input_shape(dataset), dataset.counts("train"))


def complete(store: Store, launcher: Launcher, jobs: Sequence[Job]) -> Iterator[Event]:
    """Wait until every job is done or has failed, by this launcher or by other processes on the same folder."""
    asked = {job.spec.key for job in jobs}
    every = with_first_stages(store.has, jobs)
    return (event for event in _complete(store, launcher, every) if event[1].key in asked)


def _complete(store: Store, launcher: Launcher, jobs: Mapping[str, Job]) -> Iterator[Event]:
    # Runs on the same data follow each other, because workers cache their data.
    pending = dict(sorted(jobs.items(), key=lambda each: data_key(each[1].spec)))
    before = {key: failure.attempts for key, failure in store.failures().items()}
    how = "kept"
    while True:
        failures, folders = store.failures(), store.unfinished()
        for key, job in list(pending.items()):
            failure = failures.get(key)
            if store.has(key) and (store.keeps(key) or not job.keep):
                yield pending.pop(key), Outcome(key, how)
            elif failure is not None and failure.attempts > before.get(key, 0):
                yield job, Outcome(key, "failed", failure.error)
                del pending[key]
        ready, ended = [], False
        for key, job in pending.items():
            if job.after in pending:
                continue
            held = folders.get(key, [])
            lost = tuple(folder.name for folder in held if store.abandoned(folder))
            if len(lost) == len(held):
                ready.append(replace(job, lost=lost))
        for outcome in launcher.run(ready):
            if outcome.how != "busy":
                ended = True
                yield pending.pop(outcome.key), outcome
        if not pending:
            return
        how = "done"
        if not ended:
            time.sleep(POLL)
