"""The plan of a sweep: methods, trials, seeds and data. Equal plans expand to equal runs."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

import msgspec

from crosstail.data import protocols
from crosstail.sweeps.rules import Rule
from crosstail.training.spec import RunSpec, split_method

Hparams = dict[str, Any]
MOST = 10_000  # trials, and seeds


@dataclass(frozen=True, kw_only=True)
class Plan:
    """For each method some trials with seed 0, then the best of them with several seeds; with dg, all with every seed.

    A plan is complete: it contains the hyperparameters of every trial, so reading it requires neither the data nor the
    algorithms. A method is an algorithm with or without a second stage, such as `boda` or `boda:retrain`.
    """

    shared: RunSpec  # resolved; each run replaces its algorithm, second stage, hparams, seed, unseen domain and fold
    methods: tuple[str, ...]
    unseen: tuple[str | None, ...] = (None,)  # with dg, the domains that are left out in turn
    trials: int = 20
    seeds: int = 3
    hparams: Hparams = field(default_factory=dict)  # the same in all runs
    drawn: dict[str, tuple[Hparams, ...]] = field(default_factory=dict)  # by method and trial
    redrawn: tuple[dict[str, tuple[Hparams, ...]], ...] = ()  # with dg, the trials of seeds 1, 2, …
    left_out: tuple[str, ...] = ()  # with dg, domains of which every trial leaves out two in turn, to select on

    def __post_init__(self) -> None:
        for name in ("trials", "seeds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 1 or more")
            if getattr(self, name) > MOST:
                raise ValueError(f"{name} is {getattr(self, name):,}, expected at most {MOST:,}")
        for name in ("methods", "unseen"):
            if not getattr(self, name):
                raise ValueError(f"{name} is empty, expected one or more")
        for method in self.methods if self.drawn else ():
            if not all(method in drawn for drawn in (self.drawn, *self.redrawn)):
                raise ValueError(f"the method {method!r} has no trials in `drawn`")

    @property
    def searches(self) -> "tuple[Plan, ...]":
        """The searches, each with its best trial: the whole plan, or with dg one for each unseen domain and seed."""
        protocol, found = protocols.find(self.shared.protocol), []
        if not protocol.seeded and not protocol.unseen_domains:
            return (self,)
        for unseen in self.unseen:
            for seed, drawn in enumerate((self.drawn, *self.redrawn), self.shared.seed):
                shared = replace(self.shared, unseen=unseen, seed=seed)
                seeds = 1 if protocol.seeded else self.seeds
                found.append(replace(self, shared=shared, unseen=(unseen,), seeds=seeds, drawn=drawn, redrawn=()))
        return tuple(found)

    @property
    def folds(self) -> tuple[int | None, ...]:
        """The folds that every trial is trained on in turn; None stands for a run without folds."""
        shared = self.shared
        return (shared.fold,) if shared.folds is None or shared.fold else tuple(range(1, shared.folds + 1))

    def runs(self, method: str, hparams: Hparams, seed: int | None = None) -> list[RunSpec]:
        """One run of a method, or one for each domain or fold that is left out."""
        algorithm, stage = split_method(method)
        own: dict[str, Any] = {"algorithm": algorithm, "second_stage": stage, "hparams": hparams}
        own["seed"] = self.shared.seed if seed is None else seed
        own["second_lr"] = self.shared.second_lr if stage else None
        return [replace(self.shared, **own, unseen=unseen, fold=fold) for unseen in self.unseen for fold in self.folds]

    def leaving_two(self, method: str, hparams: Hparams) -> list[RunSpec]:
        """The runs of a trial that leave out one more domain, as far as that is asked for."""
        return [
            protocols.leave_out_two(spec, other, self.left_out)
            for spec in self.runs(method, hparams)
            for other in self.left_out
            if other != spec.unseen
        ]

    def finals(self, method: str, hparams: Hparams) -> list[list[RunSpec]]:
        """The runs of a search with the selected hyperparameters, by seed; the first is the trial itself."""
        first = self.shared.seed
        return [self.runs(method, hparams, seed) for seed in range(first, first + self.seeds)]

    @property
    def runs_per_method(self) -> int:
        """Number of trials and further seeds; the selected trial is the first seed."""
        return len(self.folds) * sum(search.trials + search.seeds - 1 for search in self.searches)

    @property
    def more_per_method(self) -> int:
        """Number of runs that leave out two domains."""
        specs = [spec for search in self.searches for spec in search.leaving_two(self.methods[0], {})]
        return self.trials * len({spec.key for spec in specs})

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that identify the plan in a sweep."""
        return hashlib.sha256(msgspec.json.encode(self, order="deterministic")).hexdigest()[:16]


def make(
    shared: RunSpec,
    methods: Iterable[str],
    *,
    trials: int = 20,
    seeds: int = 3,
    hparams: Hparams | None = None,
    domains: Sequence[str] | None = None,
    rule: Rule | None = None,
) -> Plan:
    """A plan with its trials drawn; names are checked now instead of in every run.

    The `hparams` are the same in all runs. With `domains`, the data need not be there. A `rule` that is to select may
    need more runs.
    """
    from crosstail.data import load_source
    from crosstail.training.resolve import canonical_method, resolve

    known = tuple(dict.fromkeys(map(canonical_method, methods)))
    if not known:
        raise ValueError("a sweep needs at least one method, such as --algorithm boda:retrain")
    plain: dict[str, Any] = {"algorithm": "erm", "second_stage": None, "hparams": {}, "seed": 0, "second_lr": None}
    shared = replace(resolve(replace(shared, **plain)), hparams={}, second_lr=shared.second_lr)
    if rule:
        rule.check(shared)
    two = rule is not None and rule.left_out
    if shared.unseen_domains and (shared.unseen is None or two) and domains is None:
        domains = [str(spec.unseen) for spec in protocols.parts(shared.undivided, load_source(shared))]
    every = tuple(dict.fromkeys(domains or ()))
    unseen = every if shared.unseen_domains and shared.unseen is None else (shared.unseen,)
    own: dict[str, Any] = {"methods": known, "unseen": unseen, "left_out": every if two else ()}
    return with_draws(Plan(shared=shared, **own, trials=trials, seeds=seeds, hparams=hparams or {}))


def with_draws(plan: Plan) -> Plan:
    """The plan with the trials of its searches."""
    trials = range(plan.trials)
    drawn, *redrawn = (
        {method: tuple(draw(method, trials, plan.shared, seed, plan.hparams)) for method in plan.methods}
        for seed in range(plan.seeds if protocols.find(plan.shared.protocol).seeded else 1)
    )
    return replace(plan, drawn=drawn, redrawn=tuple(redrawn))


def draw(
    method: str, trials: Sequence[int], shared: RunSpec, seed: int = 0, fixed: Hparams | None = None
) -> list[Hparams]:
    """Hyperparameters of some trials of a random search, to six digits; trial 0 has defaults, and all those fixed."""
    from crosstail.training.resolve import all_hparams, drawn

    name, found = split_method(method)[0], []
    for trial in trials:
        # The last digits of an exponential depend on the machine.
        given = {
            hp: float(f"{v:.6g}") if isinstance(v, float) else v for hp, v in drawn(shared, name, trial, seed).items()
        }
        found.append(all_hparams(shared, name, given | (fixed or {})))
    return found


def search_name(method: str, spec: RunSpec) -> str:
    """Name of a search: its method, and with dg the unseen domain and the seed."""
    return method if spec.unseen is None else f"{method}, unseen {spec.unseen}, seed {spec.seed}"


def by_method(plans: Iterable[Plan]) -> dict[str, Plan]:
    """The methods of several plans of one sweep, each with the most trials and seeds that any plan requests."""
    found: dict[str, Plan] = {}
    for plan in plans:
        for method in plan.methods:
            other = found.get(method, plan)
            by_seed = zip_longest((plan.drawn, *plan.redrawn), (other.drawn, *other.redrawn), fillvalue={method: ()})
            drawn, *redrawn = ({method: max(one[method], two[method], key=len)} for one, two in by_seed)
            trials, seeds = max(plan.trials, other.trials), max(plan.seeds, other.seeds)
            most: dict[str, Any] = {"trials": trials, "seeds": seeds, "drawn": drawn, "redrawn": tuple(redrawn)}
            found[method] = replace(plan, methods=(method,), **most)
    return found
