from torch import Tensor, nn

from crosstail.algorithms._base import ERM, Choice, DomainBatch, LogUniform, hp
from crosstail.losses.contrastive import supcon_loss


class SupCon(ERM):
    """SupCon: cross-entropy + a loss that finds the samples of the same class among all others (Khosla et al., 2020).

    The loss is on projections of the features.
    """

    family = "imbalance"
    adds_term = True
    differs = (
        "added to the cross-entropy, on one view of each sample; the paper pre-trains on two augmented views, then "
        "trains the classifier",
    )

    class Hparams(ERM.Hparams):
        contrast: float = hp(1.0, LogUniform(1e-1, 1e1), "weight of the contrastive loss")
        temperature: float = hp(0.1, Choice(0.05, 0.07, 0.1, 0.2), "τ, temperature of the softmax", above=0)

    def build(self) -> None:
        super().build()
        self.projection = projection(self.backbone.num_features)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        term = supcon_loss(self.projection(z), batch.y, temperature=self.hparams.temperature)
        return super().losses(z, batch) | {"contrast": self.hparams.contrast * term}


def projection(num_features: int) -> nn.Sequential:
    """A network with one hidden layer, from features to 128 numbers."""
    return nn.Sequential(nn.Linear(num_features, num_features), nn.ReLU(), nn.Linear(num_features, 128))
