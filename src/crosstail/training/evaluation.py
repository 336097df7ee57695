"""What a model gets right, per pair, and the features that it sees."""

from collections.abc import Callable, Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.algorithms import Algorithm
from crosstail.data import DomainDataset, to_input
from crosstail.losses import PairStatistics
from crosstail.metrics import PairAccuracy

BATCH = 256


def _map(
    algorithm: Algorithm, dataset: DomainDataset, rows: NDArray[np.int64], function: Callable[[Tensor], Tensor]
) -> Iterator[Tensor]:
    """Apply a function to the inputs of these rows, batch by batch, in evaluation mode and without gradients."""
    was_training = algorithm.training
    device = next(algorithm.parameters()).device
    algorithm.eval()
    with torch.no_grad():
        for i in range(0, len(rows), BATCH):
            yield function(to_input(dataset.x[rows[i : i + BATCH]]).to(device))
    algorithm.train(was_training)


def pair_accuracy(
    algorithm: Algorithm, dataset: DomainDataset, split: str, share: tuple[int, int] = (0, 1)
) -> PairAccuracy:
    """Hits and totals of every pair on a split, or on the share of process i of n."""
    rows = dataset.rows(split)[share[0] :: share[1]]
    return PairAccuracy.from_predictions(
        predictions(algorithm, dataset, rows),
        dataset.y[rows],
        dataset.domain[rows],
        num_domains=dataset.num_domains,
        num_classes=dataset.num_classes,
    )


def predictions(algorithm: Algorithm, dataset: DomainDataset, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """The class (N,) that a model says of these rows."""
    predicted = [scores.argmax(1).cpu().numpy() for scores in _map(algorithm, dataset, rows, algorithm)]
    return np.concatenate([*predicted, np.zeros(0, np.int64)])


def features(algorithm: Algorithm, dataset: DomainDataset, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """The features (N, F) of these rows."""
    parts = [z.cpu().numpy() for z in _map(algorithm, dataset, rows, algorithm.backbone)]
    return np.concatenate([*parts, np.zeros((0, algorithm.backbone.num_features), np.float32)])


def stream_statistics(
    algorithm: Algorithm, dataset: DomainDataset, into: PairStatistics, share: tuple[int, int] = (0, 1)
) -> PairStatistics:
    """The exact statistics of the training features, or of a process's share, without keeping the features."""
    rows = dataset.rows("train")[share[0] :: share[1]]
    y, domain = torch.from_numpy(dataset.y[rows]), torch.from_numpy(dataset.domain[rows])
    for i, z in enumerate(_map(algorithm, dataset, rows, algorithm.backbone)):
        batch = slice(i * BATCH, i * BATCH + len(z))
        into.to(z.device).update(z, y[batch].to(z.device), domain[batch].to(z.device))
    return into
