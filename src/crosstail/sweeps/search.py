"""Hyperparameter search with Optuna's TPE: proposals from the trials so far, and pruning of poor trials."""

from statistics import fmean, median
from typing import Any

from crosstail import algorithms
from crosstail.sweeps.plan import Plan, complete, search_name
from crosstail.sweeps.store import Proposal, Store
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Limits
from crosstail.training.resolve import finetunes
from crosstail.training.result import selection_score
from crosstail.training.spec import RunSpec, split_method

BATCH = 5  # proposals at a time; if it were the number of workers, trials would depend on the machine


class At:
    """A stand-in for a random generator that returns the value at a fixed point of the unit interval."""

    def __init__(self, place: float) -> None:
        self.place = place

    def uniform(self, low: float, high: float) -> float:
        return low + self.place * (high - low)

    def integers(self, number: int) -> int:
        return min(int(self.place * number), number - 1)


def propose(plan: Plan, method: str, store: Store, known: int) -> list[Proposal]:
    """The next trials of a method in one of a plan's searches, from the scores of the first `known` proposals."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    declared = algorithms.find(split_method(method)[0]).Hparams
    searched: dict[str, Any] = algorithms.ranges(declared, finetunes(plan.shared))
    space: dict[str, Any] = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in searched}
    sampler = optuna.samplers.TPESampler(n_startup_trials=BATCH, seed=10_000 * plan.shared.seed + known)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    results, failures = store.results(), store.failures()
    for proposal in store.proposals(search_name(method, plan.shared))[:known]:
        specs = plan.runs(method, proposal.hparams)
        told: dict[str, Any] = {"state": optuna.trial.TrialState.FAIL}
        pruned = [spec for spec in specs if spec.key in failures and failures[spec.key].kind == "pruned"]
        if all(spec.key in results for spec in specs):
            judged = [results[spec.key].judged(plan.shared.selected_on) for spec in specs]
            told = {"value": fmean(one.score if one else 0.0 for one in judged)}
        elif pruned:
            curve = dict(enumerate(_curve(store, pruned[0]).values()))
            told = {"state": optuna.trial.TrialState.PRUNED, "intermediate_values": curve}
        study.add_trial(optuna.trial.create_trial(params=proposal.unit, distributions=space, **told))
    batch = []
    for _ in range(BATCH):
        unit = study.ask(space).params
        drawn = {name: search.draw(At(unit[name])) for name, search in searched.items()}
        batch.append(Proposal(complete(method, drawn, plan.shared), unit))
    return batch


def limits(plan: Plan, method: str, store: Store, trial: int) -> dict[int | None, Limits]:
    """The score that each fold of a trial must reach to continue: the median of the trials finished before it."""
    if plan.search == "random":
        return {}
    before = max(0, trial - (trial - 1) % BATCH)  # without its own batch, which finishes in any order
    trials = [plan.runs(method, hparams) for hparams in store.trials(plan, method)[:before]]
    found: dict[int | None, Limits] = {}
    for i, fold in enumerate(plan.folds):
        curves = [_curve(store, runs[i]) for runs in trials if store.has(runs[i].key)]
        if len(curves) >= BATCH:
            found[fold] = {point: median(curve[point] for curve in curves) for point in curves[0] if point[1] > 0}
    return found


def _curve(store: Store, spec: RunSpec) -> dict[tuple[int, int], float]:
    """The best selection score on validation so far at every evaluation of a run, by stage and step."""
    folder = store.path / "runs" / spec.key if store.has(spec.key) else store.unfinished()[spec.key][0]
    found: dict[tuple[int, int], float] = {}
    best: dict[int, float] = {}
    for record in RunFolder(folder).records():
        now = selection_score(record.validation, spec.selected_on) or 0.0
        best[record.stage] = max(best.get(record.stage, now), now)
        found[record.stage, record.step] = best[record.stage]
    return found
