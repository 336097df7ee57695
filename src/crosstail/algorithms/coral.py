from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp
from crosstail.losses.domains import coral_penalty


class CORAL(ERM):
    """CORAL: match the mean and covariance of features between domains (Sun and Saenko, 2016)."""

    family = "invariance"
    adds_term = True
    min_domains = 2
    differs = ("means are matched too, and over all pairs of domains, as in DomainBed",)

    class Hparams(ERM.Hparams):
        gamma: float = hp(1.0, LogUniform(1e-1, 1e1), "weight of the penalty")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        penalty = coral_penalty(batch.by_domain(z))
        return super().losses(z, batch) | {"coral": self.hparams.gamma * penalty}
