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
    """The second stage that a file declares.

    >>> find("retrain").class_balanced
    True
    """
    stage: TrainedStage | FittedStage = discovery.find(PACKAGE, name, "second stage").STAGE
    return stage


def catalogue() -> list[StageEntry]:
    """All second stages, trained ones first, then by year; description and paper are from the file's docstring."""
    entries = []
    for name in discovery.names(PACKAGE):
        stage, docstring = find(name), discovery.find(PACKAGE, name, "second stage").__doc__
        kind = "trained" if isinstance(stage, TrainedStage) else "fitted"
        entries.append(StageEntry(name, *cited(name, docstring), kind, stage.differs))
    return sorted(entries, key=lambda entry: (entry.kind != "trained", entry.year, entry.name))
