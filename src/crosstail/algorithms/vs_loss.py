import torch
from torch import Tensor

from crosstail.algorithms import bsoftmax
from crosstail.algorithms._base import DomainBatch, Uniform, hp


class VSLoss(bsoftmax.BSoftmax):
    """VSLoss: cross-entropy of Δ s + τ log π, scores scaled by Δ = (n / n_max)^γ and shifted (Kini et al., 2021)."""

    differs = (
        "n, n_max and π are of the classes in the sample's domain",
        "the defaults are the paper's for CIFAR-10-LT; it tunes τ and γ per data set",
    )
    scales: Tensor  # (D, C)

    class Hparams(bsoftmax.BSoftmax.Hparams):
        tau: float = hp(1.25, Uniform(0.5, 1.5), "τ, strength of the shift")
        gamma: float = hp(0.15, Uniform(0.0, 0.3), "γ, strength of the scaling")

    def build(self) -> None:
        super().build()
        counts = self.task.counts
        largest = counts.amax(1, keepdim=True).clamp(min=1)
        self.register_buffer("scales", (counts / largest) ** self.hparams.gamma, persistent=False)

    def adjustment(self, counts: Tensor) -> Tensor:
        return torch.xlogy(self.hparams.tau, counts)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        scores = self.scales[batch.domain] * self.head(z) + self.log_prior[batch.domain]
        return {"cross_entropy": self.likelihood(scores, batch.y)}
