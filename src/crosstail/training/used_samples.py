"""The samples that a run has used, by content, so that they are found again when its model is evaluated elsewhere."""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from crosstail.data import DomainDataset, examine
from crosstail.training.folder import RunFolder

FILE = "known.pt"


@dataclass(frozen=True)
class UsedSamples:
    """Content hashes of the samples that a run was trained or selected on, and of the others in its data."""

    trained: NDArray[np.int64]
    held_out: NDArray[np.int64]

    @classmethod
    def keep(cls, dataset: DomainDataset, folder: RunFolder) -> None:
        """Store the hashes of a run's data in its folder, once."""
        if (folder.path / FILE).exists():
            return
        hashes, trained = examine(dataset.x).hashes, np.isin(dataset.split, ("train", "val"))
        known = cls(np.unique(hashes[trained]), np.unique(hashes[~trained]))
        folder.save(FILE, {name: torch.from_numpy(values) for name, values in vars(known).items()})

    @classmethod
    def load(cls, folder: RunFolder) -> "UsedSamples":
        stored = folder.vectors(FILE, ("trained", "held_out"))
        if stored is None:
            missing = f"{folder.path} has no {FILE}, so it is unknown which samples it was trained on"
            raise ValueError(f"{missing}: run its `crosstail fit` command again, which adds the file without training")
        return cls(**stored)
