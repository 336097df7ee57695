"""A sweep as a value: which algorithms, how many trials and seeds, on what; the same plan gives the same runs."""

import hashlib
import importlib.util
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from crosstail.training.spec import RunSpec

DECOUPLE = ":decouple"
SEARCHES = ("random", "tpe")
Hparams = dict[str, Any]


def parse(entry: str) -> tuple[str, bool]:
    """An algorithm as it is written in a plan, and whether its classifier is trained again.

    >>> parse("boda"), parse("boda:decouple"), parse("own/mine.py:decouple")
    (('boda', False), ('boda', True), ('own/mine.py', True))
    """
    return entry.removesuffix(DECOUPLE), entry.endswith(DECOUPLE)


def entry_of(algorithm: str, decouple: bool) -> str:
    """The inverse of `parse`."""
    return algorithm + DECOUPLE * decouple


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Per algorithm some trials from seed 0, and then the best of them under several seeds.

    Everything that decides a run is written down here, the hyperparameters of every trial included, so that a reader
    of a plan needs neither the data nor the algorithms.
    """

    shared: RunSpec  # its algorithm, decouple, hparams, seed and unseen are those of each run
    algorithms: tuple[str, ...]
    unseen: tuple[str | None, ...] = (None,)  # under dg, the domains that are left out in turn
    trials: int = 20
    seeds: int = 3
    search: str = "random"
    drawn: dict[str, tuple[Hparams, ...]] = field(default_factory=dict)  # by algorithm and trial; tpe proposes the rest

    def __post_init__(self) -> None:
        for name in ("trials", "seeds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}, expected 1 or more")
        if self.search not in SEARCHES:
            raise ValueError(f"search is {self.search!r}, expected {' or '.join(SEARCHES)}")

    def runs(self, entry: str, hparams: Hparams, seed: int = 0) -> list[RunSpec]:
        """One run of an algorithm, or one for each domain that is left out."""
        algorithm, decouple = parse(entry)
        own: dict[str, Any] = {"algorithm": algorithm, "decouple": decouple, "seed": seed}
        return [replace(self.shared, **own, hparams=hparams, unseen=unseen) for unseen in self.unseen]

    def finals(self, entry: str, hparams: Hparams) -> list[list[RunSpec]]:
        """The runs of the chosen hyperparameters, by seed; those of seed 0 are the trial's own."""
        return [self.runs(entry, hparams, seed) for seed in range(self.seeds)]

    @property
    def runs_per_algorithm(self) -> int:
        """Trials and seeds; the chosen trial is the first of the seeds."""
        return len(self.unseen) * (self.trials + self.seeds - 1)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {**vars(self), "shared": self.shared.to_json()}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> "Plan":
        """The inverse of `to_json`."""
        return cls(
            **{
                **record,
                "shared": RunSpec.from_json(record["shared"]),
                "algorithms": tuple(record["algorithms"]),
                "unseen": tuple(record["unseen"]),
                "drawn": {entry: tuple(trials) for entry, trials in record["drawn"].items()},
            }
        )

    @property
    def key(self) -> str:
        """Names the plan among others of the same sweep."""
        return hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()[:16]


def make(shared: RunSpec, entries: Iterable[str], *, trials: int = 20, seeds: int = 3, search: str = "random") -> Plan:
    """A plan with its trials drawn; a wrong name is told now and not by every run."""
    from crosstail import protocols

    if search == "tpe" and importlib.util.find_spec("optuna") is None:
        raise ValueError("--search tpe needs Optuna: pip install 'crosstail[optuna]'")
    entries = tuple(dict.fromkeys(entries))
    if not entries:
        raise ValueError("a sweep needs algorithms: name one or more, such as --algorithm boda:decouple")
    unseen = tuple(spec.unseen for spec in protocols.folds(shared))
    plan = Plan(shared=shared, algorithms=entries, unseen=unseen, trials=trials, seeds=seeds, search=search)
    known = trials if search == "random" else 1
    return replace(plan, drawn={entry: tuple(draw(entry, range(known), shared.finetunes)) for entry in entries})


def draw(entry: str, trials: Sequence[int], finetune: bool = False) -> list[Hparams]:
    """The hyperparameters of these trials of a random search; trial 0 has the defaults."""
    from crosstail import algorithms

    declared = algorithms.find(_known(entry)).Hparams
    found = [algorithms.draw(declared, trial, finetune=finetune) for trial in trials]
    return [{name: rounded(value) for name, value in words.items()} for words in found]


def rounded(value: Any) -> Any:
    """Six digits of a number: the last ones of an exponential differ from machine to machine.

    >>> rounded(0.00012345678), rounded("auto")
    (0.000123457, 'auto')
    """
    return float(f"{value:.6g}") if isinstance(value, float) else value


def _known(entry: str) -> str:
    algorithm, _ = parse(entry)
    name, colon, word = algorithm.rpartition(":")
    if colon and not algorithm.endswith(".py"):
        raise ValueError(f"{entry!r}: after {name} only {DECOUPLE!r} may follow, not {word!r}")
    return algorithm


def by_algorithm(plans: Iterable[Plan]) -> dict[str, Plan]:
    """The algorithms of several plans of one sweep, each with the most trials and seeds that any of them asks for."""
    found: dict[str, Plan] = {}
    for plan in plans:
        for entry in plan.algorithms:
            other = found.get(entry, plan)
            drawn = max(plan.drawn[entry], other.drawn[entry], key=len)
            trials, seeds = max(plan.trials, other.trials), max(plan.seeds, other.seeds)
            found[entry] = replace(plan, algorithms=(entry,), trials=trials, seeds=seeds, drawn={entry: drawn})
    return found
