import torch
from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, Uniform, hp


class RSC(ERM):
    """RSC: mute the features that the label's score depends on most, so that others are learnt (Huang et al., 2020).

    The gradient of the score in the features is the label's row of the classifier. Muting applies to the samples whose
    probability of the label drops most by it.
    """

    family = "regularisation"
    adds_term = True
    reads_weights = True
    differs = (
        "features of the last layer are muted, as in DomainBed, not channels or places of feature maps",
        "samples with the largest drop in probability are muted, as in the paper's code and DomainBed; the paper draws "
        "them",
    )

    class Hparams(ERM.Hparams):
        features: float = hp(1 / 3, Uniform(0.0, 0.5), "share of a sample's features that are muted")
        samples: float = hp(1 / 3, Uniform(0.0, 0.5), "share of samples that are muted")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        with torch.no_grad():
            muted = top(self.linear.weight[batch.y], self.hparams.features)  # (B, F)
            drop = self.probability(z, batch) - self.probability(z * ~muted, batch)
            muted &= top(drop[None], self.hparams.samples).mT
        return super().losses(z * ~muted, batch)

    def probability(self, z: Tensor, batch: DomainBatch) -> Tensor:
        return self.head(z).float().softmax(1).gather(1, batch.y[:, None])[:, 0]


def top(values: Tensor, share: float) -> Tensor:
    """Whether a value of each row (R, n) is among the largest: at least the (1 − share)-quantile."""
    return values >= values.quantile(1 - share, 1, keepdim=True)
