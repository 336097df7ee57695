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
    """The predicted class of every test sample beside its true class, domain and group, in the order of the data.

    `known` are the predictions of a model that uses the domain, where it is told the domain of each sample.
    """

    predicted: NDArray[np.int64]
    y: NDArray[np.int64]
    domain: NDArray[np.int64]
    group: NDArray[np.int64] | None = None  # where the data have groups
    known: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, algorithm: Algorithm, dataset: DomainDataset, known: bool) -> "Predictions":
        """Predict the test samples of a data set, also with the domain `known` if so."""
        rows = dataset.rows("test")
        group = None if dataset.group is None else dataset.group[rows]
        told = predicted(algorithm, dataset, rows, known=True) if known else None
        return cls(predicted(algorithm, dataset, rows), dataset.y[rows], dataset.domain[rows], group, told)

    def save(self, folder: RunFolder) -> None:
        """Store each in the smallest integer type."""
        given = {name: values for name, values in vars(self).items() if values is not None}
        kinds = {name: np.uint8 if values.max(initial=0) < 256 else np.int32 for name, values in given.items()}
        folder.save(FILE, {name: torch.from_numpy(values.astype(kinds[name])) for name, values in given.items()})

    @classmethod
    def load(cls, folder: RunFolder) -> "Predictions | None":
        """Those of a finished run, or None if it has none."""
        stored = folder.load(FILE)
        return None if stored is None else cls(**{name: values.numpy() for name, values in stored.items()})
