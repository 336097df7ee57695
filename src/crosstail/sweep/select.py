"""Which trial of each algorithm is best on validation, and the test figures of the chosen under several seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from crosstail.sweep.index import METRICS, Summary
from crosstail.sweep.plan import Hparams, Plan, by_algorithm
from crosstail.sweep.store import Failure, Store

SELECTED_ON = "pair_average"


@dataclass(frozen=True)
class Choice:
    """The best trial of an algorithm, and what became of the others."""

    plan: Plan
    entry: str
    trial: int | None  # None: none is finished
    hparams: Hparams
    validation: float | None
    finished: int
    pruned: int
    failed: dict[int, Failure]  # by trial
    missing: int
    keys: list[list[str]]  # of the runs of every trial that is known

    def finals(self) -> list[list[str]]:
        """The keys of the chosen runs, by seed."""
        if self.trial is None:
            return []
        return [[spec.key for spec in specs] for specs in self.plan.finals(self.entry, self.hparams)]


@dataclass(frozen=True)
class Row:
    """The test figures of an algorithm: mean and standard deviation over the seeds that are finished."""

    entry: str
    seeds: int
    planned: int
    figures: dict[str, tuple[float | None, float | None]]


def choices(store: Store, results: Mapping[str, Summary], plan: Plan | None = None) -> list[Choice]:
    """The best trial of every algorithm of a plan, or of all plans of a sweep."""
    plans = by_algorithm(store.plans() if plan is None else [plan])
    validation = {key: summary["validation"][SELECTED_ON] for key, summary in results.items()}
    failures = store.failures()
    return [choose(plan, entry, store.trials(plan, entry), validation, failures) for entry, plan in plans.items()]


def choose(
    plan: Plan,
    entry: str,
    trials: Sequence[Hparams],
    validation: Mapping[str, float | None],
    failures: Mapping[str, Failure],
) -> Choice:
    """The trial with the highest validation figure, the first of equals; under dg its mean over the unseen domains.

    Of the finished runs this sees their validation figures, by key, and nothing else.
    """
    figures: dict[int, float] = {}
    failed: dict[int, Failure] = {}
    pruned = 0
    keys = [[spec.key for spec in plan.runs(entry, hparams)] for hparams in trials]
    for trial, folds in enumerate(keys):
        if all(key in validation for key in folds):
            figures[trial] = fmean(_number(validation[key]) for key in folds)
            continue
        reasons = [failures[key] for key in folds if key not in validation and key in failures]
        errors = [reason for reason in reasons if reason.kind != "pruned"]
        if errors:
            failed[trial] = errors[0]
        pruned += bool(reasons) and not errors
    best = max(figures, key=lambda trial: (figures[trial], -trial), default=None)
    return Choice(
        plan=plan,
        entry=entry,
        trial=best,
        hparams={} if best is None else trials[best],
        validation=None if best is None else figures[best],
        finished=len(figures),
        pruned=pruned,
        failed=failed,
        missing=plan.trials - len(figures) - pruned - len(failed),
        keys=keys,
    )


def _number(figure: float | None) -> float:
    if figure is None:
        raise ValueError("the data have no validation samples: there is nothing to select on")
    return figure


def table(chosen: Sequence[Choice], results: Mapping[str, Summary]) -> list[Row]:
    """One row per algorithm; under dg a figure is first averaged over the unseen domains."""
    rows = []
    for choice in chosen:
        seeds = [keys for keys in choice.finals() if all(key in results for key in keys)]
        figures = {}
        for metric in METRICS:
            values = [[results[key]["test"][metric] for key in keys] for keys in seeds]
            known = [fmean(over) for over in values if None not in over]
            figures[metric] = fmean(known) if known else None, stdev(known) if len(known) > 1 else None
        rows.append(Row(choice.entry, len(seeds), choice.plan.seeds, figures))
    return rows


def as_file(chosen: Sequence[Choice]) -> dict[str, Hparams]:
    """What `crosstail fit --hparams` takes: the hyperparameters by algorithm."""
    return {choice.entry: choice.hparams for choice in chosen if choice.trial is not None}
