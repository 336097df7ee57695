import torch
from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp


class Focal(ERM):
    """Focal: −(1 − p)^γ log p, with p the label's probability: down-weights easy samples (Lin et al., 2017)."""

    family = "imbalance"
    differs = ("p is a softmax over the classes instead of a sigmoid per class, and there is no weight α",)

    class Hparams(ERM.Hparams):
        gamma: float = hp(1.0, LogUniform(0.5, 5.0), "γ, how strongly well-classified samples are down-weighted")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        each = self.likelihood(self.head(z), batch.y, reduction="none")
        # For γ < 1 the slope at 1 − p = 0 is infinite, and infinity times a cross-entropy of 0 is NaN.
        missing = (-torch.expm1(-each)).clamp(min=torch.finfo(each.dtype).tiny)
        return {"cross_entropy": (missing**self.hparams.gamma * each).mean()}
