"""Two random mixtures of the domains that should have the same features."""

import torch
from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp


class CausIRL(ERM):
    """Cross-entropy + γ · a distance between two parts of the batch; a subclass defines `distance`.

    Each domain is cut at a random place: the first part of the batch has its first samples, the second the rest.
    """

    family = "invariance"
    adds_term = True
    min_domains = 2

    class Hparams(ERM.Hparams):
        gamma: float = hp(1.0, LogUniform(1e-1, 1e1), "γ, weight of the distance")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        k, n, _ = batch.by_domain(z).shape
        first = (torch.arange(n) < torch.randint(n, (k, 1))).flatten()
        parts = [mask.nonzero()[:, 0].to(z.device) for mask in (first, ~first)]  # on the CPU, where masks cost no wait
        distance = self.distance(z, *parts) if min(map(len, parts)) > 1 else z.sum() * 0
        return super().losses(z, batch) | {"causirl": self.hparams.gamma * distance}

    def distance(self, z: Tensor, first: Tensor, rest: Tensor) -> Tensor:
        """Distance between the features (B, F) of two parts, given as row numbers."""
        raise TypeError(f"{type(self).__name__} must define distance(z, first, rest)")
