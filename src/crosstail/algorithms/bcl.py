import torch
from torch import Tensor, nn

from crosstail.algorithms import bsoftmax
from crosstail.algorithms._base import Choice, DomainBatch, LogUniform, hp
from crosstail.algorithms.supcon import projection
from crosstail.losses.contrastive import balanced_contrastive_loss
from crosstail.losses.host import in_full_precision


class BCL(bsoftmax.BSoftmax):
    """BCL: BSoftmax + a contrastive loss in which all classes have the same weight (Zhu et al., 2022).

    As SupCon, with two changes: a learnt prototype of every class is one more sample, and the denominator has the mean
    instead of the sum of a class's terms.
    """

    differs = (
        *bsoftmax.BSoftmax.differs,
        "on one view of each sample; the paper contrasts two augmented views and classifies a third",
        "prototypes are learnt vectors; the paper projects the classifier's weights",
    )

    class Hparams(bsoftmax.BSoftmax.Hparams):
        contrast: float = hp(0.3, LogUniform(1e-1, 1.0), "weight of the contrastive loss, relative to BSoftmax")
        temperature: float = hp(0.1, Choice(0.05, 0.07, 0.1, 0.2), "τ, temperature of the softmax", above=0)

    def build(self) -> None:
        super().build()
        self.to_prototypes = projection(self.backbone.num_features)
        self.prototypes = nn.Parameter(torch.randn(self.task.num_classes, 128) / 128**0.5)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        with in_full_precision(z):
            projected = self.to_prototypes(z.to(self.prototypes))
        given = projected, batch.y, self.prototypes
        contrast = balanced_contrastive_loss(*given, temperature=self.hparams.temperature)
        return super().losses(z, batch) | {"contrast": self.hparams.contrast * contrast}
