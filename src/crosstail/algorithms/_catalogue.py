"""What the algorithms' files say about them, as data for a table, a page or a program."""

import inspect
import re
from dataclasses import asdict, dataclass, fields
from typing import Any

from crosstail import discovery
from crosstail.algorithms._algorithm import Algorithm

FAMILIES = (
    "vanilla",
    "robust optimisation",
    "augmentation",
    "meta-learning",
    "invariance",
    "transfer",
    "multi-task",
    "imbalance",
    "ours",
    "own",
)
_PAPER = re.compile(r"^(?P<what>.*?)\s*\((?P<paper>[^()]*?),?\s*(?P<year>(?:19|20)\d\d)[^()]*\)", re.DOTALL)


@dataclass(frozen=True)
class Entry:
    """One algorithm."""

    name: str
    family: str
    what: str
    paper: str
    year: int
    passes: float  # forward and backward passes over the batch that a step needs
    min_domains: int
    hyperparameters: tuple[dict[str, Any], ...]  # name, default, search, meaning
    differs: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def entry(name: str, algorithm: type[Algorithm]) -> Entry:
    """What one class says about itself."""
    found = _PAPER.search(inspect.cleandoc(algorithm.__doc__ or ""))
    if found is None:
        raise ValueError(f"{name}: its docstring names no paper, as in (Vapnik, 1999)")
    declared = fields(algorithm.Hparams)
    hparams = tuple(
        {
            "name": f.name,
            "default": f.default,
            "search": str(f.metadata["search"] or ""),
            "meaning": f.metadata["meaning"],
        }
        for f in declared
    )
    return Entry(
        name,
        algorithm.family,
        " ".join(found["what"].split()),
        " ".join(found["paper"].split()),
        int(found["year"]),
        algorithm.passes,
        algorithm.min_domains,
        hparams,
        algorithm.differs,
    )


def catalogue() -> list[Entry]:
    """All algorithms, family by family, each by year."""
    from crosstail.algorithms import find

    entries = [entry(name, find(name)) for name in discovery.names("crosstail.algorithms")]
    return sorted(entries, key=lambda e: (FAMILIES.index(e.family), e.year, e.name))
