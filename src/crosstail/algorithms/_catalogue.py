"""All algorithms as data, read from their files, for tables and documentation."""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from crosstail import discovery
from crosstail.algorithms._algorithm import Algorithm
from crosstail.algorithms._combined import docstrings
from crosstail.algorithms._hparams import address
from crosstail.literature import FAMILIES, cited


@dataclass(frozen=True)
class AlgorithmEntry:
    """One algorithm."""

    name: str
    family: str
    what: str
    paper: str
    year: int  # of the last paper, where there are several
    passes: float  # forward and backward passes over the batch per step
    min_domains: int
    hyperparameters: tuple[dict[str, Any], ...]  # name, default, search, meaning
    differs: tuple[str, ...]
    presets: tuple[str, ...]


def entry(name: str, algorithm: type[Algorithm]) -> AlgorithmEntry:
    """The entry of one class, with description and paper from its docstring or its parts'."""
    parts = [cited(name, words) for words in docstrings(algorithm)]
    *earlier, (_, paper, year) = parts
    hparams = tuple(
        {"name": address(f), "default": f.default, "search": _search(f.metadata), "meaning": f.metadata["meaning"]}
        for f in fields(algorithm.Hparams)
    )
    return AlgorithmEntry(
        name,
        algorithm.family,
        "; ".join(what for what, _, _ in parts),
        "; ".join([*(f"{paper}, {year}" for _, paper, year in earlier), paper]),
        year,
        algorithm.passes,
        algorithm.min_domains,
        hparams,
        algorithm.differs,
        tuple(f"{name}@{preset}" for preset in algorithm.presets if "@" not in name),
    )


def _search(metadata: Mapping[str, Any]) -> str:
    """Search range, and default and search range for finetuning, if there are any."""
    found = [str(metadata["search"])] if metadata["search"] else []
    if metadata["finetune"]:
        default, search = metadata["finetune"]
        found.append(f"finetuning: {default:g}, {search}")
    return "; ".join(found)


def preset_entries(of: AlgorithmEntry) -> list[AlgorithmEntry]:
    """The presets of an algorithm, with the hyperparameters that differ from its own."""
    from crosstail.algorithms import find

    found = [entry(name, find(name)) for name in of.presets]
    return [
        replace(e, hyperparameters=tuple(h for h in e.hyperparameters if h not in of.hyperparameters)) for e in found
    ]


def catalogue() -> list[AlgorithmEntry]:
    """All algorithms by family, then year."""
    from crosstail.algorithms import find

    entries = [entry(name, find(name)) for name in discovery.names("crosstail.algorithms")]
    return sorted(entries, key=lambda e: (FAMILIES.index(e.family), e.year, e.name))
