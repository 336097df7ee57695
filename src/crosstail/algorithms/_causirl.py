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
        first = (torch.arange(n) < torch.randint(n, (k, 1))).flatten().to(z.device)
        enough = min(int(first.sum()), int((~first).sum())) > 1
        distance = self.distance(z, first) if enough else z.sum() * 0
        return super().losses(z, batch) | {"causirl": self.hparams.gamma * distance}

    def distance(self, z: Tensor, first: Tensor) -> Tensor:
        """Distance between the features (B, F) of the first part, given as a mask (B,), and of the other."""
        raise TypeError(f"{type(self).__name__} must define distance(z, first)")
