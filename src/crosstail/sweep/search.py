"""Search beyond random: proposals by Optuna's TPE from the trials so far, and an end for those that are poor."""

from statistics import mean, median
from typing import Any

from crosstail import algorithms
from crosstail.sweep.plan import Plan, parse, rounded
from crosstail.sweep.select import SELECTED_ON
from crosstail.sweep.store import Proposal, Store
from crosstail.training.folder import RunFolder

BATCH = 5  # proposals at a time; a number of workers would make the trials depend on the machine


class At:
    """A random generator that draws what lies at a place between 0 and 1: whatever is drawn can be searched."""

    def __init__(self, place: float) -> None:
        self.place = place

    def uniform(self, low: float, high: float) -> float:
        """A number."""
        return low + self.place * (high - low)

    def integers(self, number: int) -> int:
        """A whole number below another."""
        return min(int(self.place * number), number - 1)


def propose(plan: Plan, entry: str, store: Store, known: int) -> list[Proposal]:
    """The next trials of an algorithm, from the validation figures of so many proposals before."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    searched: dict[str, Any] = algorithms.ranges(algorithms.find(parse(entry)[0]).Hparams, plan.shared.finetunes)
    space: dict[str, Any] = {name: optuna.distributions.FloatDistribution(0.0, 1.0) for name in searched}
    before = store.proposals(entry)[:known]
    sampler = optuna.samplers.TPESampler(n_startup_trials=BATCH, seed=known)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    results, failures = store.results(), store.failures()
    for proposal in before:
        keys = [spec.key for spec in plan.runs(entry, proposal.hparams)]
        told: dict[str, Any] = {"state": optuna.trial.TrialState.FAIL}
        if all(key in results for key in keys):
            told = {"value": mean(results[key]["validation"][SELECTED_ON] for key in keys)}
        elif all(key in failures and failures[key].kind == "pruned" for key in keys):
            curve = dict(enumerate(_curve(store, keys[0]).values()))
            told = {"state": optuna.trial.TrialState.PRUNED, "intermediate_values": curve}
        study.add_trial(optuna.trial.create_trial(params=proposal.unit, distributions=space, **told))
    batch = []
    for _ in range(BATCH):
        unit = study.ask(space).params
        hparams = {name: rounded(search.draw(At(unit[name]))) for name, search in searched.items()}
        batch.append(Proposal(hparams, unit))
    return batch


def limits(plan: Plan, entry: str, store: Store, trial: int) -> dict[tuple[int, int], float]:
    """How good a trial must be to go on, by stage and step: the median of those finished when it was proposed.

    Where a trial is several runs (dg) none ends early: one poor domain does not make a poor trial.
    """
    if plan.search == "random" or len(plan.unseen) > 1:
        return {}
    before = max(0, trial - (trial - 1) % BATCH)  # not those proposed with it: they may end before or after it
    keys = [plan.runs(entry, hparams)[0].key for hparams in store.trials(plan, entry)[:before]]
    curves = [_curve(store, key) for key in keys if store.has(key)]
    if len(curves) < BATCH:
        return {}
    return {point: median(curve[point] for curve in curves) for point in curves[0] if point[1] > 0}


def _curve(store: Store, key: str) -> dict[tuple[int, int], float]:
    """The best validation figure so far at every evaluation of a run, by stage and step."""
    folder = store.path / "runs" / key if store.has(key) else store.unfinished()[key][0]
    found: dict[tuple[int, int], float] = {}
    best: dict[int, float] = {}
    for record in RunFolder(folder).records():
        stage = record["stage"]
        best[stage] = max(best.get(stage, 0.0), record["validation"][SELECTED_ON] or 0.0)
        found[stage, record["step"]] = best[stage]
    return found
