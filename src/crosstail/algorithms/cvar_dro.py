from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp
from crosstail.losses.domains import cvar_loss


class CVaRDRO(ERM):
    """CVaRDRO: mean cross-entropy of a batch's worst share α, the conditional value at risk (Levy et al., 2020)."""

    family = "robust optimisation"
    differs = ("Adam instead of SGD; batches have the same number of samples of each domain",)

    class Hparams(ERM.Hparams):
        alpha: float = hp(0.1, LogUniform(1e-2, 1.0), "α, share of the samples that count", above=0)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        errors = self.likelihood(self.head(z), batch.y, reduction="none")
        return {"cvar": cvar_loss(errors, alpha=self.hparams.alpha)}
