"""Predictions of the final model for every test sample."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail.training.folder import RunFolder

FILE = "predictions.pt"


@dataclass(frozen=True)
class Predictions:
    """The predicted class of every test sample beside its true class, domain and group, in the order of the data.

    `known` are the predictions of a model that uses the domain, where it is told the domain of each sample.
    """

    predicted: NDArray[np.int64]
    y: NDArray[np.int64]
    domain: NDArray[np.int64]
    group: NDArray[np.int64] | None = None  # where the data have groups
    known: NDArray[np.int64] | None = None

    def save(self, folder: RunFolder) -> None:
        """Store each in the smallest integer type."""
        given = {name: values for name, values in vars(self).items() if values is not None}
        kinds = {name: np.uint8 if values.max(initial=0) < 256 else np.int32 for name, values in given.items()}
        folder.save(FILE, {name: torch.from_numpy(values.astype(kinds[name])) for name, values in given.items()})

    @classmethod
    def load(cls, folder: RunFolder) -> "Predictions | None":
        """Load the predictions of a finished run, or None if it has none."""
        stored = folder.vectors(FILE, ("predicted", "y", "domain"), ("group", "known"))
        if stored is None:
            return None
        folder.check_samples(
            FILE, [stored[key] for key in ("predicted", "y", "known") if key in stored], stored["domain"]
        )
        return cls(**stored)
