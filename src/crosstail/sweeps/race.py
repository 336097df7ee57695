"""A race: every method on the same frozen features with the same small budget, and which of them to use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from statistics import fmean, mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail import algorithms
from crosstail.data import DomainDataset
from crosstail.metrics import DEFAULT, Answered, Answers, PairAccuracy, compare_methods
from crosstail.metrics._calibration import Calibration, calibrated
from crosstail.metrics.as_they_come import by_prevalence
from crosstail.sweeps import plan as planning
from crosstail.sweeps.cost import cost
from crosstail.sweeps.halving import score
from crosstail.sweeps.index import Judged, Summary
from crosstail.sweeps.plan import Plan, by_method
from crosstail.sweeps.race_result import BestTrial, Entrant, FailedRun, RaceResult, Standing, StoppedMethod
from crosstail.sweeps.recommendation import recommendation, winner
from crosstail.sweeps.select import SelectedTrial, choices
from crosstail.sweeps.store import Failure, Store
from crosstail.training.held_out import predictions
from crosstail.training.model import build_algorithm
from crosstail.training.resolve import unreached_phases
from crosstail.training.run import Run
from crosstail.training.run_data import input_shape
from crosstail.training.spec import RunSpec, split_method

HELD_OUT = "val", "test"


COME = "as_they_come"
"""The other question that a race may rank by: it then compares and shows answers for samples as they come."""


def enter(
    shared: RunSpec, methods: Sequence[str], dataset: DomainDataset, *, trials: int, seeds: int
) -> tuple[Plan, dict[str, str]]:
    """The plan of a race, and the methods that do not suit the data, each with the reason."""
    for split, use in (("val", "select on"), ("test", "compare on")):
        if not len(dataset.rows(split)):
            raise ValueError(f"{dataset.name} has no samples in the split {split!r}: there is nothing to {use}")
    plan = planning.make(shared, methods, trials=trials, seeds=seeds)
    left_out = {}
    for method in plan.methods:
        try:
            build_algorithm(plan.runs(method, {})[0], input_shape(dataset), dataset.counts("train"))
        except ValueError as error:
            left_out[method] = str(error)
    racing = tuple(method for method in plan.methods if method not in left_out)
    if not racing:
        raise ValueError("\n".join(left_out.values()))
    return replace(plan, methods=racing, drawn={method: plan.drawn[method] for method in racing}), left_out


def outcome(
    plans: Sequence[Plan],
    left_out: dict[str, str],
    store: Store,
    splits: Sequence[DomainDataset],
    failures: Mapping[str, Failure],
) -> RaceResult:
    """Compare the runs of a race, of which there is a plan for each round, on the test samples of each fold."""
    *earlier, plan = plans
    found, failed = entrants(plan, store, splits, failures)
    board = leaderboard(found)
    validated, samples = (sum(len(split.rows(part)) for split in splits) for part in HELD_OUT)
    pairs = [np.sum([split.counts(part) for split in splits], axis=0) for part in HELD_OUT]
    stopped, results = [], store.results()
    for method, own in by_method(earlier).items():
        if method not in plan.methods:
            (choice,) = choices(store, results, own)
            failed += _failed(choice, results, failures)
            stopped.append(choice)
    stopped.sort(key=lambda choice: (choice.plan.trials, score(choice, results)), reverse=True)
    chosen = [(plan, row.method, row.hparams) for row in board] + [(c.plan, c.method, c.hparams) for c in stopped]
    shared = ("dataset", "backbone", "tune", "steps", "batch_size", "folds")
    settings: dict[str, Any] = {name: getattr(plan.shared, name) for name in shared}
    return RaceResult(
        recommendation=recommendation(board, validated) if board else "",
        use=winner(board).method if board else "",
        **settings,
        trials=plan.trials,
        seeds=plan.seeds,
        samples=samples,
        validation_samples=validated,
        pairs=(int((pairs[0] > 0).sum()), int((pairs[1] > 0).sum())),
        complete=len(board) == len(plan.methods) and all(len(row.runs) == plan.seeds for row in board),
        leaderboard=board,
        stopped=[StoppedMethod(c.method, c.plan.trials, c.validation) for c in stopped if c.validation is not None],
        left_out=left_out,
        failed=failed,
        notes=[
            *two_winners(found, results),
            *(f"{method}: {note}" for of, method, h in chosen for note in unreached_phases(of.runs(method, h)[0])),
        ],
    )


def entrants(
    plan: Plan, store: Store, splits: Sequence[DomainDataset], failures: Mapping[str, Failure]
) -> tuple[list[Entrant], list[FailedRun]]:
    """The best trial of each method with the test predictions of its models, and the runs that failed."""
    results = store.results()
    y = np.concatenate([split.y[split.rows("test")] for split in splits])
    found: list[Entrant] = []
    failed: list[FailedRun] = []
    for choice in choices(store, results, plan):
        failed += _failed(choice, results, failures)
        if choice.trial is None:
            continue
        runs = {seed: keys for seed, keys in enumerate(choice.finals()) if all(key in results for key in keys)}
        said = {seed: _answers(store, keys, y, choice.selected_on) for seed, keys in runs.items()}
        entrant = Entrant(
            method=choice.method,
            family=algorithms.find(split_method(choice.method)[0]).family,
            cost=cost(choice.method),
            trial=choice.trial,
            hparams=choice.hparams,
            runs=runs,
            seconds=mean(results[key].seconds for key in _names(choice) if key in results),
            selected_on=choice.selected_on,
            validation={
                s: Judged.mean([results[key].judged(choice.selected_on) or Judged(0.0, 0.0) for key in keys])
                for s, keys in runs.items()
            },
            validated={seed: validated for seed, (_, validated) in said.items()},
            answers={seed: tested for seed, (tested, _) in said.items()},
        )
        found.append(entrant)
    return found, failed


def _names(choice: SelectedTrial) -> dict[str, str]:
    names = {key: f"trial {trial}" for trial, keys in enumerate(choice.keys) for key in keys}
    finals = {key: f"seed {seed}" for seed, keys in enumerate(choice.finals()) for key in keys}
    return finals | names


def _failed(
    choice: SelectedTrial, results: Mapping[str, Summary], failures: Mapping[str, Failure]
) -> Iterator[FailedRun]:
    for key, name in _names(choice).items():
        if key in failures and key not in results:
            yield FailedRun(choice.method, name, (failures[key].error or [failures[key].kind])[-1])


def _answers(store: Store, keys: Sequence[str], y: NDArray[np.int64], on: str) -> tuple[Answers, Answers | None]:
    """The answers of a run, or of all folds, for the test samples, and for the validation samples if they are kept."""
    parts, come, validated = [], [], []
    for run in (Run(store.path / "runs" / key) for key in keys):
        if run.test is None:
            raise ValueError(f"{run.path} has no predictions.pt: remove the folder and repeat the command")
        parts.append(run.test)
        if run.held_out is not None and on == COME:
            come.append(_as_they_come(run, run.held_out.test))
            validated.append(_as_they_come(run, run.held_out.validation))
        elif run.held_out is not None:
            validated.append(predictions(run.held_out.validation))
    said = Answers.pooled(parts)
    if not np.array_equal(said.y, y):
        raise ValueError(
            f"{store.path}: the data or their split have changed since this race was started; choose another --out"
        )
    tested = Answers.pooled(come) if come else said
    return tested, Answers.pooled(validated) if len(validated) == len(keys) else None


def _as_they_come(run: Run, samples: Answers) -> Answers:
    """The answers for the prevalence of the classes at each site, without probabilities."""
    given = run.calibration or Calibration.none(samples.domains, len(samples.classes))
    said = by_prevalence(calibrated(samples, given))
    return replace(predictions(said), by_prevalence=said.by_prevalence)


def two_winners(found: Sequence[Entrant], results: Mapping[str, Summary]) -> list[str]:
    """A note where pairs that are equally important and samples as they come have other winners on validation."""
    winners = []
    for on in ("pair_average", COME):
        judged = {
            one.method: fmean(results[key].validation[on] or 0.0 for keys in one.runs.values() for key in keys)
            for one in found
            if one.runs and all(on in results[key].validation for keys in one.runs.values() for key in keys)
        }
        if not judged:
            return []
        best = max(judged, key=lambda method: round(judged[method], 9))
        winners.append((best, f"{best} ({100 * judged[best]:.1f} %)"))
    (alike, first), (come, second) = winners
    if alike == come:
        return []
    other = "pair_average ranks by the first" if found[0].selected_on == COME else f"{COME} ranks by the second"
    return [
        f"two questions have two winners on validation: {first} if every pair is equally important, {second} for "
        f"samples as they come, with answers for that; --select-on {other}"
    ]


def leaderboard(found: Sequence[Entrant]) -> list[Standing]:
    """Rank by the selection metric, ties by cost, then name; the test set only shows how certain the differences are.

    Candidates for the recommendation are compared on validation, so that the test set has no say in it either.
    """
    if not found:
        return []
    # Rounded, so that equal values in another order of seeds have equal means.
    judged = {entrant.method: Judged.mean(list(entrant.validation.values())) for entrant in found}
    ranked = sorted(found, key=lambda one: (-round(judged[one.method].score, 9), one.cost, one.method))
    metric, shown = (COME, COME) if ranked[0].selected_on == COME else (DEFAULT, "balanced_accuracy")
    seeds = {one.method: [Answered(seed, given, metric) for seed, given in one.answers.items()] for one in ranked}
    leads = compare_methods(seeds, ranked[0].method, "pair_average")
    checks = {one.method: [Answered(s, given, metric) for s, given in one.validated.items() if given] for one in ranked}
    behind = compare_methods(checks, ranked[0].method, "pair_average")
    board = []
    for entrant in ranked:
        answers, lead = list(entrant.answers.values()), leads.get(entrant.method)
        other = behind.get(entrant.method)  # None if it is the first, or was not compared
        near = other is not None and not (other.sure and other.estimate < 0)
        told = [one.told for one in answers]
        tests, known = ([one.value(shown) for one in track] for track in (answers, told))
        averages = [test.pair_average or 0.0 for test in tests]
        low, high = PairAccuracy.mean_interval(tests, "pair_average") or (0.0, 1.0)
        kept: dict[str, Any] = {f.name: getattr(entrant, f.name) for f in fields(BestTrial)}
        standing = Standing(
            **kept,
            validation=round(judged[entrant.method].value, 9),
            test=mean(averages),
            low=low,
            high=high,
            deviation=stdev(averages) if len(averages) > 1 else None,
            worst_domain=mean(test.worst_domain or 0.0 for test in tests),
            known=mean(test.pair_average or 0.0 for test in known) if any(one.informed for one in answers) else None,
            lead=lead and -lead,
            candidate=entrant is ranked[0] or near,
        )
        board.append(standing)
    return board
