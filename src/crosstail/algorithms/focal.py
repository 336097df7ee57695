from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp
from crosstail.losses.tails import focal_loss


class Focal(ERM):
    """Focal: −(1 − p)^γ log p, with p the label's probability: down-weights easy samples (Lin et al., 2017)."""

    family = "imbalance"
    differs = ("p is a softmax over the classes instead of a sigmoid per class, and there is no weight α",)

    class Hparams(ERM.Hparams):
        gamma: float = hp(1.0, LogUniform(0.5, 5.0), "γ, how strongly well-classified samples are down-weighted")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        return {"cross_entropy": focal_loss(self.head(z), batch.y, gamma=self.hparams.gamma)}
