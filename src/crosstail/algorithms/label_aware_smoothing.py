from torch import Tensor

from crosstail.algorithms._base import ERM, Choice, DomainBatch, hp
from crosstail.losses.tails import label_aware_smoothing_loss


class LabelAwareSmoothing(ERM):
    """LabelAwareSmoothing: smooth labels of frequent classes more, as those are overconfident (Zhong et al., 2021)."""

    family = "imbalance"
    differs = (
        "n is the count of the sample's class in its domain",
        "the other classes share ε, as in the paper; its code spreads ε over all classes, the label's included",
        "the whole network is trained with it; the paper uses it for the classifier, after mixup training",
    )

    class Hparams(ERM.Hparams):
        frequent: float = hp(0.3, Choice(0.2, 0.3, 0.4), "ε_1, smoothing of the most frequent class")
        rare: float = hp(0.0, Choice(0.0, 0.1), "ε_K, smoothing of the rarest class")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        options = {"frequent": self.hparams.frequent, "rare": self.hparams.rare}
        loss = label_aware_smoothing_loss(self.head(z), batch.y, batch.domain, self.counts, **options)
        return {"cross_entropy": loss}
