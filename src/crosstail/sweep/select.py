"""Select each method's best trial on validation, and report its test accuracy over several seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from crosstail.sweep.index import METRICS, Summary
from crosstail.sweep.plan import Hparams, Plan, by_method
from crosstail.sweep.store import Failure, Store

SELECTED_ON = "pair_average"


@dataclass(frozen=True)
class SelectedTrial:
    """The best trial of a method, and the state of the others."""

    plan: Plan
    method: str
    trial: int | None  # None if no trial is finished
    hparams: Hparams
    validation: float | None
    finished: int
    pruned: int
    failed: dict[int, Failure]  # by trial
    missing: int
    keys: list[list[str]]  # of the runs of every known trial

    def finals(self) -> list[list[str]]:
        """The keys of the runs with the selected hyperparameters, by seed."""
        if self.trial is None:
            return []
        return [[spec.key for spec in specs] for specs in self.plan.finals(self.method, self.hparams)]


@dataclass(frozen=True)
class SeedSummary:
    """The test accuracy of a method: mean and standard deviation over the finished seeds."""

    method: str
    seeds: int
    planned: int
    accuracy: dict[str, tuple[float | None, float | None]]


def choices(store: Store, results: Mapping[str, Summary], plan: Plan | None = None) -> list[SelectedTrial]:
    """The best trial of every method of a plan, or of all plans of a sweep."""
    plans = by_method(store.plans() if plan is None else [plan])
    validation = {key: summary.validation[SELECTED_ON] for key, summary in results.items()}
    failures = store.failures()
    return [choose(plan, method, store.trials(plan, method), validation, failures) for method, plan in plans.items()]


def choose(
    plan: Plan,
    method: str,
    trials: Sequence[Hparams],
    validation: Mapping[str, float | None],
    failures: Mapping[str, Failure],
) -> SelectedTrial:
    """Select the trial with the highest validation accuracy, the first of ties; with dg, the mean over unseen domains.

    Only the validation accuracies of the finished runs are passed in, by key, never those on the test set.
    """
    accuracies: dict[int, float] = {}
    failed: dict[int, Failure] = {}
    pruned = 0
    keys = [[spec.key for spec in plan.runs(method, hparams)] for hparams in trials]
    for trial, folds in enumerate(keys):
        if all(key in validation for key in folds):
            found = [accuracy for key in folds if (accuracy := validation[key]) is not None]
            if len(found) < len(folds):
                raise ValueError("the data have no validation samples: there is nothing to select on")
            accuracies[trial] = fmean(found)
            continue
        reasons = [failures[key] for key in folds if key not in validation and key in failures]
        errors = [reason for reason in reasons if reason.kind != "pruned"]
        if errors:
            failed[trial] = errors[0]
        elif reasons:
            pruned += 1
    best = max(accuracies, key=lambda trial: (accuracies[trial], -trial), default=None)
    return SelectedTrial(
        plan=plan,
        method=method,
        trial=best,
        hparams={} if best is None else trials[best],
        validation=None if best is None else accuracies[best],
        finished=len(accuracies),
        pruned=pruned,
        failed=failed,
        missing=plan.trials - len(accuracies) - pruned - len(failed),
        keys=keys,
    )


def table(chosen: Sequence[SelectedTrial], results: Mapping[str, Summary]) -> list[SeedSummary]:
    """One row per method; with dg, accuracies are first averaged over the unseen domains."""
    rows = []
    for choice in chosen:
        seeds = [keys for keys in choice.finals() if all(key in results for key in keys)]
        accuracy: dict[str, tuple[float | None, float | None]] = {}
        for metric in METRICS:
            values = [[results[key].test[metric] for key in keys] for keys in seeds]
            known = [fmean(v for v in over if v is not None) for over in values if None not in over]
            accuracy[metric] = fmean(known) if known else None, stdev(known) if len(known) > 1 else None
        rows.append(SeedSummary(choice.method, len(seeds), choice.plan.seeds, accuracy))
    return rows


def as_file(chosen: Sequence[SelectedTrial]) -> dict[str, Hparams]:
    """The selected hyperparameters by method, as `crosstail fit --hparams` reads them."""
    return {choice.method: choice.hparams for choice in chosen if choice.trial is not None}
