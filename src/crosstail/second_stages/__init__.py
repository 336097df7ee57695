"""Ways to fit the classifier again once the representation is fixed: one file each, with one `STAGE`."""

from dataclasses import dataclass

from crosstail import discovery
from crosstail.literature import cited
from crosstail.second_stages._linear import LinearHead, linear_classifier
from crosstail.second_stages._stage import Features, FittedModel, FittedStage, Head, Rows, TrainedStage

__all__ = [
    "Features",
    "FittedModel",
    "FittedStage",
    "Head",
    "LinearHead",
    "Rows",
    "StageEntry",
    "TrainedStage",
    "catalogue",
    "entry",
    "find",
    "linear_classifier",
]

PACKAGE = "crosstail.second_stages"


@dataclass(frozen=True)
class StageEntry:
    """One second stage, as tables and documentation describe it."""

    name: str
    what: str
    paper: str
    year: int
    kind: str  # trained or fitted
    differs: tuple[str, ...]


def find(name: str) -> TrainedStage | FittedStage:
    """The second stage that a file declares."""
    return discovery.declared(PACKAGE, name, "second stage", "STAGE", (TrainedStage, FittedStage))


def entry(name: str) -> StageEntry:
    """What its file says about a second stage; description and paper are from the docstring."""
    stage, docstring = find(name), discovery.find(PACKAGE, name, "second stage").__doc__
    return StageEntry(
        name, *cited(name, docstring), "trained" if isinstance(stage, TrainedStage) else "fitted", stage.differs
    )


def catalogue() -> list[StageEntry]:
    """All second stages, trained ones first, then by year."""
    entries = map(entry, discovery.names(PACKAGE))
    return sorted(entries, key=lambda one: (one.kind != "trained", one.year, one.name))
