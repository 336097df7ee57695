"""Ways to fit the classifier again once the representation is fixed: one file each, with one `STAGE`."""

from crosstail import discovery
from crosstail.second_stages._stage import Features, FittedModel, FittedStage, Head, LinearHead, Rows, TrainedStage

__all__ = ["Features", "FittedModel", "FittedStage", "Head", "LinearHead", "Rows", "TrainedStage", "find"]


def find(name: str) -> TrainedStage | FittedStage:
    """The second stage that a file declares.

    >>> find("retrain").class_balanced
    True
    """
    stage: TrainedStage | FittedStage = discovery.find("crosstail.second_stages", name, "second stage").STAGE
    return stage
