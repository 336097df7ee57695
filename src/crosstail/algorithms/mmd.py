from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp
from crosstail.losses.domains import mmd_penalty


class MMD(ERM):
    """MMD: minimise the maximum mean discrepancy of features between domains (Li et al., 2018)."""

    family = "invariance"
    adds_term = True
    min_domains = 2
    differs = ("no autoencoder and no adversary; the kernel is a sum of seven Gaussians, as in DomainBed",)

    class Hparams(ERM.Hparams):
        gamma: float = hp(1.0, LogUniform(1e-1, 1e1), "weight of the penalty")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        return super().losses(z, batch) | {"mmd": self.hparams.gamma * mmd_penalty(batch.by_domain(z))}
