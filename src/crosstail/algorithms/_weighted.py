"""What the algorithms that weigh samples by their pair's count share."""

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._algorithm import Task
from crosstail.algorithms.erm import ERM
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch


class Weighted(ERM):
    """The mean of w · cross-entropy, w being the weight of the sample's pair; a subclass says what it is."""

    family = "imbalance"
    weights: Tensor  # (D, C)

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        self.register_buffer("weights", self.weigh(task.counts), persistent=False)

    def weigh(self, counts: Tensor) -> Tensor:
        """The weights (D, C); that of a pair without samples is never used."""
        raise TypeError(f"{type(self).__name__} must define weigh(counts)")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Cross-entropy, weighted; it is divided by the number of samples, not by the sum of their weights."""
        each = F.cross_entropy(self.head(z), batch.y, reduction="none")
        return {"cross_entropy": (self.weights[batch.domain, batch.y] * each).mean()}


def averaging_one(weights: Tensor, counts: Tensor) -> Tensor:
    """The weights (D, C), scaled so that those of a domain's samples average 1: the loss keeps the scale of ERM's."""
    samples, weight = counts.sum(1, keepdim=True), (counts * weights).sum(1, keepdim=True)
    return weights * samples / weight.where(samples > 0, 1)
