from torch import Tensor

from crosstail.algorithms import bsoftmax
from crosstail.algorithms._base import DomainBatch, Uniform, hp
from crosstail.losses.tails import vs_loss


class VSLoss(bsoftmax.BSoftmax):
    """VSLoss: cross-entropy of Δ s + τ log π, scores scaled by Δ = (n / n_max)^γ and shifted (Kini et al., 2021)."""

    differs = (
        "n, n_max and π are of the classes in the sample's domain",
        "the defaults are the paper's for CIFAR-10-LT; it tunes τ and γ per data set",
    )

    class Hparams(bsoftmax.BSoftmax.Hparams):
        tau: float = hp(1.25, Uniform(0.5, 1.5), "τ, strength of the shift")
        gamma: float = hp(0.15, Uniform(0.0, 0.3), "γ, strength of the scaling")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        h = self.hparams
        loss = vs_loss(self.head(z), batch.y, batch.domain, self.counts, tau=h.tau, gamma=h.gamma)
        return {"cross_entropy": loss}
