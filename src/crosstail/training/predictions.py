"""What the final model predicts for every test sample."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset
from crosstail.training.evaluation import predicted
from crosstail.training.folder import RunFolder

FILE = "predictions.pt"


@dataclass(frozen=True)
class Predictions:
    """The predicted class of every test sample beside its true class and its domain, in the order of the data."""

    predicted: NDArray[np.int64]
    y: NDArray[np.int64]
    domain: NDArray[np.int64]

    @classmethod
    def of(cls, algorithm: Algorithm, dataset: DomainDataset) -> "Predictions":
        """Predict the test samples of a data set."""
        rows = dataset.rows("test")
        return cls(predicted(algorithm, dataset, rows), dataset.y[rows], dataset.domain[rows])

    def save(self, folder: RunFolder) -> None:
        """Store them in the smallest integer type."""
        largest = max(int(values.max(initial=0)) for values in vars(self).values())
        kind = np.uint8 if largest < 256 else np.int32
        folder.save(FILE, {name: torch.from_numpy(values.astype(kind)) for name, values in vars(self).items()})

    @classmethod
    def load(cls, folder: RunFolder) -> "Predictions | None":
        """Those of a finished run, or None if it has none."""
        stored = folder.load(FILE)
        return None if stored is None else cls(**{name: values.numpy() for name, values in stored.items()})
