"""The rounds of a race: methods that are weak on validation are dropped early."""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from math import inf
from typing import NamedTuple

from crosstail import second_stages
from crosstail.sweeps.cost import cost
from crosstail.sweeps.index import Judged, Summary
from crosstail.sweeps.plan import Plan
from crosstail.sweeps.select import SelectedTrial, choices
from crosstail.sweeps.store import Store

ALWAYS = ("erm", "frozen:blend")  # what the others are compared with: the baseline and the default on features
UNTRAINED = "without training"


class Size(NamedTuple):
    """How many methods, besides those that never stop, get how many trials and seeds."""

    methods: int
    trials: int
    seeds: int


class Round(NamedTuple):
    """A part of a race, and the sizes of those after it."""

    name: str
    plan: Plan
    later: list[Size]


def untrained(method: str) -> bool:
    """Whether a method fits a classifier to the features as they are, which takes seconds and has no hyperparameters.

    >>> untrained("frozen:blend"), untrained("frozen:retrain"), untrained("erm:blend")
    (True, False, False)
    """
    found = cost(method)
    return not found.passes and found.fitted


def fitted_on_features() -> list[str]:
    """The methods that train nothing: every second stage that is fitted, on the features as they are."""
    return [method for stage in second_stages.catalogue() if untrained(method := f"frozen:{stage.name}")]


def rounds(plan: Plan, scores: Callable[[Plan], Mapping[str, float]], finalists: int) -> Iterator[Round]:
    """First what takes seconds; then successive halving (Jamieson and Talwalkar, 2016), down to the finalists.

    In each round the better half gets another trial, and in the last one all trials and seeds. The runs of a round must
    be finished before the next one is asked for; `scores` are then those of its methods on validation.
    """
    left = [method for method in plan.methods if method not in ALWAYS]
    sizes = [Size(len(left), 1, 1)]
    while sizes[-1].methods > finalists and len(sizes) < plan.trials:
        sizes.append(Size(max(finalists, -(-sizes[-1].methods // 2)), len(sizes) + 1, 1))
    sizes[-1] = sizes[-1]._replace(trials=plan.trials, seeds=plan.seeds)
    found: Mapping[str, float] = {}
    if first := [method for method in plan.methods if untrained(method)]:
        yield Round(UNTRAINED, _narrowed(plan, first, 1, plan.seeds), sizes)
    if len(first) == len(plan.methods):
        return
    for number, (methods, trials, seeds) in enumerate(sizes, 1):
        if methods < len(left):
            left.sort(key=lambda method: (-found[method], cost(method)))
            left = left[:methods]
        part = _narrowed(plan, {*left, *ALWAYS}, trials, seeds)
        yield Round(f"round {number} of {len(sizes)}", part, sizes[number:])
        found = scores(part) if number < len(sizes) else {}


def _narrowed(plan: Plan, to: Collection[str], trials: int, seeds: int) -> Plan:
    methods = tuple(method for method in plan.methods if method in to)
    drawn = {method: plan.drawn[method][:trials] for method in methods}
    return replace(plan, methods=methods, trials=trials, seeds=seeds, drawn=drawn)


def scores(store: Store, plan: Plan) -> dict[str, float]:
    """The validation scores of a plan's methods."""
    results = store.results()
    return {choice.method: score(choice, results) for choice in choices(store, results, plan)}


def score(choice: SelectedTrial, results: Mapping[str, Summary]) -> float:
    """Validation score of a method, larger is better; a method without a finished trial comes last."""
    if choice.trial is None:
        return -inf
    judged = [results[key].judged(choice.selected_on) for key in choice.keys[choice.trial]]
    return round(Judged.mean([one for one in judged if one is not None]).score, 9)
