"""Cross-entropy weighted by the count of the sample's pair."""

import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch


class Weighted(ERM):
    """Mean of w · cross-entropy, with the weight w of the sample's pair; a subclass defines `weigh`."""

    family = "imbalance"
    differs: tuple[str, ...] = (
        "n is the count of the sample's class in its domain",
        "the loss is divided by the number of samples, as in the code of Cui et al. (2019); the BoDA code divides by "
        "the sum of the batch's weights, which reduces the influence of rare classes",
    )
    weights: Tensor  # (D, C)

    def build(self) -> None:
        super().build()
        self.register_buffer("weights", self.weigh(self.task.counts), persistent=False)

    def weigh(self, counts: Tensor) -> Tensor:
        """Weights (D, C); an absent pair's is never used."""
        raise TypeError(f"{type(self).__name__} must define weigh(counts)")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Weighted cross-entropy, divided by the number of samples, not by the sum of the weights."""
        each = F.cross_entropy(self.head(z), batch.y, reduction="none")
        return {"cross_entropy": (self.weights[batch.domain, batch.y] * each).mean()}


def averaging_one(weights: Tensor, counts: Tensor) -> Tensor:
    """Scale weights (D, C) to average 1 over a domain's samples, so that the loss has the scale of ERM's."""
    samples, weight = counts.sum(1, keepdim=True), (counts * weights).sum(1, keepdim=True)
    return weights * samples / weight.where(samples > 0, 1)
