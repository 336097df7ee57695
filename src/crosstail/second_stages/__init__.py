"""Ways to fit the classifier again once the representation is fixed: one file each, with one `STAGE`."""

from crosstail import discovery
from crosstail.second_stages._stage import TrainedStage

__all__ = ["TrainedStage", "find"]


def find(name: str) -> TrainedStage:
    """The second stage that a file declares.

    >>> find("retrain").class_balanced
    True
    """
    stage: TrainedStage = discovery.find("crosstail.second_stages", name, "second stage").STAGE
    return stage
