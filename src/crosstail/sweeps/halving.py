"""The rounds of a race: methods that are weak on validation are dropped early."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from math import inf

from crosstail.sweeps.cost import cost
from crosstail.sweeps.index import Judged, Summary
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.select import SelectedTrial, choices
from crosstail.sweeps.store import Store

ALWAYS = ("erm", "frozen:blend")  # what the others are compared with: the baseline and the default on features


def rounds(plan: Plan, store: Store, finalists: int) -> Iterator[Plan]:
    """Successive halving (Jamieson and Talwalkar, 2016): another trial for the better half, down to the finalists.

    The runs of each plan must be finished before the next one is asked for. The last has all trials and seeds.
    """
    left, trials = [method for method in plan.methods if method not in ALWAYS], 1
    while len(left) > finalists and trials < plan.trials:
        part = _narrowed(plan, left, trials=trials, seeds=1)
        yield part
        results = store.results()
        scores = {choice.method: score(choice, results) for choice in choices(store, results, part)}
        left.sort(key=lambda method: (-scores[method], cost(method)))
        left, trials = left[: max(finalists, -(-len(left) // 2))], trials + 1
    yield _narrowed(plan, left, trials=plan.trials, seeds=plan.seeds)


def _narrowed(plan: Plan, left: list[str], *, trials: int, seeds: int) -> Plan:
    methods = tuple(method for method in plan.methods if method in left or method in ALWAYS)
    drawn = {method: plan.drawn[method][:trials] for method in methods}
    return replace(plan, methods=methods, trials=trials, seeds=seeds, drawn=drawn)


def score(choice: SelectedTrial, results: Mapping[str, Summary]) -> float:
    """Validation score of a method, larger is better; a method without a finished trial comes last."""
    if choice.trial is None:
        return -inf
    judged = [results[key].judged(choice.selected_on) for key in choice.keys[choice.trial]]
    return round(Judged.mean([one for one in judged if one is not None]).score, 9)
