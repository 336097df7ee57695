"""What a second stage declares; `crosstail.training` runs it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class TrainedStage:
    """A new linear classifier, trained by gradients on the features of the fixed representation."""

    algorithm: str
    class_balanced: bool
