"""The loop, the second stage, evaluation and resumable runs."""

from crosstail.training.loop import Diverged
from crosstail.training.run import fit
from crosstail.training.spec import RunSpec

__all__ = ["Diverged", "RunSpec", "fit"]
