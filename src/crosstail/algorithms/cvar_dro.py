import torch
from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp


class CVaRDRO(ERM):
    """CVaRDRO: mean cross-entropy of a batch's worst share α, the conditional value at risk (Levy et al., 2020)."""

    family = "robust optimisation"
    differs = ("Adam instead of SGD; batches have the same number of samples of each domain",)

    class Hparams(ERM.Hparams):
        alpha: float = hp(0.1, LogUniform(1e-2, 1.0), "α, share of the samples that count", above=0)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        each = self.likelihood(self.head(z), batch.y, reduction="none").sort(descending=True).values
        size = self.hparams.alpha * len(each)  # the last of the worst samples counts in part
        weights = (size - torch.arange(len(each), device=z.device)).clamp(0, 1) / min(size, len(each))
        return {"cvar": weights.to(each) @ each}
