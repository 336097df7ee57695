"""Select the best trial of each search on validation, and report the test accuracy over several seeds."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from math import sqrt
from statistics import fmean, pstdev, stdev

from crosstail.data import protocols
from crosstail.data.protocols import Protocol
from crosstail.metrics import VIEWS
from crosstail.sweeps.index import Accuracies, Judged, Summary, pooled_test
from crosstail.sweeps.plan import Hparams, Plan, by_method, search_name
from crosstail.sweeps.rules import Rule
from crosstail.sweeps.store import Failure, Store

Spread = tuple[float | None, float | None]
"""Mean and deviation or standard error over the seeds, as the protocol has it; None if there are too few."""

UNSEEN_METRICS = {"accuracy": "average", "class_mean": "pair_average"}
"""Metrics reported with dg, and their names in a run, which tests one domain."""


@dataclass(frozen=True)
class SelectedTrial:
    """The best trial of a method in a search, and the state of the others."""

    plan: Plan  # the search: with dg, for one unseen domain and seed
    method: str
    trial: int | None  # None if no trial is finished
    hparams: Hparams
    selected_on: str
    validation: float | None  # that metric
    finished: int
    failed: dict[int, Failure]  # by trial
    missing: int
    keys: list[list[str]]  # of the runs of every known trial: one, or one for each fold

    @property
    def name(self) -> str:
        """The method, and with dg the unseen domain and the seed."""
        return search_name(self.method, self.plan.shared)

    def finals(self) -> list[list[str]]:
        """The keys of the runs with the selected hyperparameters, by seed."""
        if self.trial is None:
            return []
        return [[spec.key for spec in specs] for specs in self.plan.finals(self.method, self.hparams)]


@dataclass(frozen=True)
class SeedSummary:
    """The test accuracy of a method over its finished seeds, and what its trials were selected by."""

    method: str
    trial: int | None  # with dg None: every unseen domain and seed has its own
    validation: float | None  # the mean over the searches of what is selected on
    seeds: int
    planned: int
    accuracy: dict[str, Spread]  # by metric
    unseen: dict[str, Spread] = field(default_factory=dict)  # with dg, accuracy by unseen domain
    spread: str = "sd"  # of these: standard deviation, or standard error of the mean
    known: Spread | None = None  # pair average with the domain known, if the method uses it
    selected_on: str = "pair_average"


def choices(
    store: Store,
    results: Mapping[str, Summary],
    plan: Plan | None = None,
    select_on: str | None = None,
    rule: Rule | None = None,
) -> list[SelectedTrial]:
    """The best trial of every search of a plan, or of all plans of a sweep, method by method.

    `select_on` may differ from the sweep's metric, which selected the evaluation of each run; a `rule` selects both.
    """
    failures, found = store.failures(), []
    for method, own in by_method(store.plans() if plan is None else [plan]).items():
        on = select_on or own.shared.selected_on
        if rule:
            from crosstail.sweeps.by_rule import judge  # here, because it imports torch

            validation, on = judge(rule, store.path / "runs", results, own, method), rule.label
        else:
            validation = {key: summary.judged(on) for key, summary in results.items()}
        found += [choose(part, method, validation, failures, on) for part in own.searches]
    return found


def choose(
    plan: Plan,
    method: str,
    validation: Mapping[str, Judged | None],
    failures: Mapping[str, Failure],
    on: str,
) -> SelectedTrial:
    """Select the trial of a search that is best on validation, the first of ties; with dg the last.

    With folds, the validation metric is the mean over them, and a trial is finished when all of them are. Only the
    validation metrics of the finished runs are passed in, by key, never those on the test set.
    """
    found: dict[int, Judged] = {}
    failed: dict[int, Failure] = {}
    trials = plan.drawn[method][: plan.trials]
    keys = [[spec.key for spec in plan.runs(method, hparams)] for hparams in trials]
    for trial, own in enumerate(keys):
        ended = [failures[key] for key in own if key in failures and key not in validation]
        if all(key in validation for key in own):
            known = [judged for key in own if (judged := validation[key]) is not None]
            if len(known) < len(own):
                raise ValueError("the data have no validation samples: there is nothing to select on")
            found[trial] = Judged.mean(known)
        elif ended:
            failed[trial] = ended[0]
    order = 1 if protocols.find(plan.shared.protocol).last_of_ties else -1
    best = max(found, key=lambda trial: (found[trial].score, order * trial), default=None)
    return SelectedTrial(
        plan=plan,
        method=method,
        trial=best,
        hparams={} if best is None else trials[best],
        selected_on=on,
        validation=None if best is None else found[best].value,
        finished=len(found),
        failed=failed,
        missing=plan.trials - len(found) - len(failed),
        keys=keys,
    )


def table(chosen: Sequence[SelectedTrial], results: Mapping[str, Summary]) -> list[SeedSummary]:
    """One row per method; with dg, accuracies are averaged over the unseen domains first, then over the seeds."""
    return [_summary(method, list(own), results) for method, own in groupby(chosen, key=lambda choice: choice.method)]


def _summary(method: str, own: Sequence[SelectedTrial], results: Mapping[str, Summary]) -> SeedSummary:
    plan = own[0].plan
    protocol = protocols.find(plan.shared.protocol)
    found: dict[int, dict[str, Accuracies]] = {}  # by seed and unseen domain
    known: list[float | None] = []
    for choice in own:
        for seed, keys in enumerate(choice.finals(), choice.plan.shared.seed):
            if all(key in results for key in keys):
                summaries = [results[key] for key in keys]
                found.setdefault(seed, {})[choice.plan.shared.unseen or ""] = pooled_test(summaries)
                if any(summary.known for summary in summaries):
                    known.append(pooled_test(summaries, known=True)["pair_average"])
    domains = dict.fromkeys(choice.plan.shared.unseen or "" for choice in own)
    seeds = [runs for runs in found.values() if len(runs) == len(domains)]
    accuracy = {}
    for name, metric in (UNSEEN_METRICS if protocol.unseen_domains else dict(zip(VIEWS, VIEWS, strict=True))).items():
        values = [[tested[metric] for tested in runs.values()] for runs in seeds]
        means = [fmean(v for v in over if v is not None) for over in values if None not in over]
        accuracy[name] = _spread(means, protocol)
    validation = [choice.validation for choice in own if choice.validation is not None]
    return SeedSummary(
        method=method,
        trial=None if protocol.unseen_domains else own[0].trial,
        validation=fmean(validation) if validation else None,
        seeds=len(seeds),
        planned=len({choice.plan.shared.seed for choice in own}) * plan.seeds,
        accuracy=accuracy,
        known=_spread([value for value in known if value is not None], protocol) if known else None,
        unseen={name: _spread([runs[name]["average"] or 0.0 for runs in seeds], protocol) for name in domains if name},
        spread=protocol.spread,
        selected_on=own[0].selected_on,
    )


def _spread(values: Sequence[float], protocol: Protocol) -> Spread:
    if len(values) < 2:
        return values[0] if values else None, None
    return fmean(values), standard_error(values) if protocol.spread == "se" else stdev(values)


def standard_error(values: Sequence[float]) -> float:
    """Standard error of a mean as DomainBed computes it: the deviation, with n in its denominator, over √n."""
    return pstdev(values) / sqrt(len(values))


def as_file(chosen: Sequence[SelectedTrial]) -> dict[str, Hparams]:
    """The selected hyperparameters by name of the search, as `crosstail fit --hparams` reads them."""
    return {choice.name: choice.hparams for choice in chosen if choice.trial is not None}
