"""A race: every method on the same frozen features with the same small budget, and which of them to use."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail import algorithms
from crosstail.data import DomainDataset
from crosstail.metrics import Answers, Difference, PairAccuracy, paired_difference
from crosstail.metrics._comparisons import holm
from crosstail.sweeps import plan as planning
from crosstail.sweeps.cost import cost
from crosstail.sweeps.halving import score
from crosstail.sweeps.index import Judged, Summary
from crosstail.sweeps.plan import Plan, by_method
from crosstail.sweeps.race_result import BestTrial, Entrant, FailedRun, RaceResult, Standing, StoppedMethod
from crosstail.sweeps.recommendation import recommendation
from crosstail.sweeps.select import SelectedTrial, choices
from crosstail.sweeps.store import Failure, Store
from crosstail.training.model import build_algorithm
from crosstail.training.resolve import unreached_phases
from crosstail.training.run import Run
from crosstail.training.run_data import input_shape
from crosstail.training.spec import RunSpec, split_method


@dataclass(frozen=True)
class SharedTest:
    """Class and domain of the test samples, with folds one fold after the other."""

    y: NDArray[np.int64]
    domain: NDArray[np.int64]
    about: dict[str, Any]  # num_domains, num_classes, and the group of each sample

    @classmethod
    def of(cls, splits: Sequence[DomainDataset]) -> "SharedTest":
        """From a data set as it is split, once for each fold."""
        y, domain, group = (
            np.concatenate([getattr(split, name)[split.rows("test")] for split in splits])
            if getattr(splits[0], name) is not None
            else None
            for name in ("y", "domain", "group")
        )
        assert y is not None and domain is not None
        sizes = {"num_domains": splits[0].num_domains, "num_classes": splits[0].num_classes}
        return cls(y, domain, {**sizes, "group": group})


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
    plans: Sequence[Plan], left_out: dict[str, str], store: Store, tested: SharedTest, failures: Mapping[str, Failure]
) -> RaceResult:
    """Compare the runs of a race, of which there is a plan for each round."""
    *earlier, plan = plans
    found, failed = entrants(plan, store, tested, failures)
    board, samples = leaderboard(found, tested), len(tested.y)
    stopped, results = [], store.results()
    for method, own in by_method(earlier).items():
        if method not in plan.methods:
            (choice,) = choices(store, results, own)
            failed += _failed(choice, results, failures)
            stopped.append(choice)
    stopped.sort(key=lambda choice: (choice.plan.trials, score(choice, results)), reverse=True)
    chosen = [(plan, row.method, row.hparams) for row in board] + [(c.plan, c.method, c.hparams) for c in stopped]
    shared = ("dataset", "backbone", "freeze", "steps", "batch_size", "folds")
    settings: dict[str, Any] = {name: getattr(plan.shared, name) for name in shared}
    return RaceResult(
        recommendation=recommendation(board, samples) if board else "",
        **settings,
        trials=plan.trials,
        seeds=plan.seeds,
        samples=samples,
        complete=len(board) == len(plan.methods) and all(len(row.runs) == plan.seeds for row in board),
        leaderboard=board,
        stopped=[StoppedMethod(c.method, c.plan.trials, c.validation) for c in stopped if c.validation is not None],
        left_out=left_out,
        failed=failed,
        notes=[f"{method}: {note}" for of, method, h in chosen for note in unreached_phases(of.runs(method, h)[0])],
    )


def entrants(
    plan: Plan, store: Store, tested: SharedTest, failures: Mapping[str, Failure]
) -> tuple[list[Entrant], list[FailedRun]]:
    """The best trial of each method with the test predictions of its models, and the runs that failed."""
    results = store.results()
    found: list[Entrant] = []
    failed: list[FailedRun] = []
    for choice in choices(store, results, plan):
        failed += _failed(choice, results, failures)
        if choice.trial is None:
            continue
        runs = {seed: keys for seed, keys in enumerate(choice.finals()) if all(key in results for key in keys)}
        uses_domain = any(results[key].known for keys in runs.values() for key in keys)
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
            correct={seed: _correct(store, keys, tested) for seed, keys in runs.items()},
            known={s: _correct(store, keys, tested, known=True) for s, keys in runs.items() if uses_domain},
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


def _correct(store: Store, keys: Sequence[str], tested: SharedTest, known: bool = False) -> NDArray[np.bool_]:
    """Whether each test sample was classified correctly by the run, or by the one that tested its fold."""
    parts = []
    for run in (Run(store.path / "runs" / key) for key in keys):
        if run.test is None:
            raise ValueError(f"{run.path} has no predictions.pt: remove the folder and repeat the command")
        parts.append(run.test)
    said = Answers.pooled(parts)
    if not np.array_equal(said.y, tested.y):
        raise ValueError(
            f"{store.path}: the data or their split have changed since this race was started; choose another --out"
        )
    return said.told.correct if known else said.correct


def leaderboard(found: Sequence[Entrant], tested: SharedTest) -> list[Standing]:
    """Rank by the selection metric, ties by cost; the test set only shows how certain the differences are."""
    if not found:
        return []
    # Rounded, so that equal values in another order of seeds have equal means.
    judged = {entrant.method: Judged.mean(list(entrant.validation.values())) for entrant in found}
    ranked = sorted(found, key=lambda entrant: (-round(judged[entrant.method].score, 9), entrant.cost))
    y, domain, about = tested.y, tested.domain, tested.about
    leads = [_lead(ranked[0], entrant, tested, max(2000, 100 * len(ranked))) for entrant in ranked[1:]]
    adjusted = holm([lead.p_value for lead in leads])
    board = []
    for entrant, lead, p in zip(ranked, [None, *leads], [None, *adjusted.tolist()], strict=True):
        tests, known = (
            [PairAccuracy.from_predictions(np.where(right, y, -1), y, domain, **about) for right in track.values()]
            for track in (entrant.correct, entrant.known)
        )
        averages = [test.pair_average or 0.0 for test in tests]
        ends = [test.interval("pair_average") or (0.0, 1.0) for test in tests]
        kept: dict[str, Any] = {f.name: getattr(entrant, f.name) for f in fields(BestTrial)}
        standing = Standing(
            **kept,
            validation=round(judged[entrant.method].value, 9),
            test=mean(averages),
            low=min(low for low, _ in ends),
            high=max(high for _, high in ends),
            deviation=stdev(averages) if len(averages) > 1 else None,
            worst_domain=mean(test.worst_domain or 0.0 for test in tests),
            known=mean(test.pair_average or 0.0 for test in known) if known else None,
            lead=lead,
            adjusted=p,
        )
        board.append(standing)
    return board


def _lead(first: Entrant, other: Entrant, tested: SharedTest, draws: int) -> Difference:
    """The paired difference, with enough draws for a p-value that is small after the correction."""
    both = [seed for seed in first.correct if seed in other.correct]
    pairs = [(first.correct[seed], other.correct[seed]) for seed in both]
    truth = {"y": tested.y, "domain": tested.domain, **tested.about}
    return over_seeds([paired_difference(*pair, **truth, resamples=draws) for pair in pairs])


def over_seeds(differences: Sequence[Difference]) -> Difference:
    """The mean difference, with an interval that covers every seed's: variation between seeds is noise too.

    >>> over_seeds([Difference(0.02, 0.01, 0.03, 0.02), Difference(0.0, -0.01, 0.01, 0.9)])
    Difference(estimate=0.01, low=-0.01, high=0.03, p_value=0.9)
    """
    estimate, low = mean(d.estimate for d in differences), min(d.low for d in differences)
    return Difference(estimate, low, max(d.high for d in differences), max(d.p_value for d in differences))
