import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crosstail.algorithms import bsoftmax
from crosstail.algorithms._base import Choice, DomainBatch, LogUniform, hp
from crosstail.algorithms.supcon import projection
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
        size, classes = len(batch), torch.arange(self.task.num_classes, device=z.device)
        y = torch.cat([batch.y, classes])
        others = ~torch.eye(size, len(y), dtype=torch.bool, device=z.device)
        alike = others & (batch.y[:, None] == y)
        number = torch.where(alike, alike.sum(1, keepdim=True), torch.bincount(y)[y])  # of the class, without itself
        with in_full_precision(z):
            u = F.normalize(torch.cat([self.to_prototypes(z.to(self.prototypes)), self.prototypes]))
            similarity = u[:size] @ u.mT / self.hparams.temperature
            balanced = (similarity - number.log()).masked_fill(~others, -torch.inf)
            error = balanced.logsumexp(1, keepdim=True) - similarity
        contrast = ((error * alike).sum(1) / alike.sum(1)).mean()
        return super().losses(z, batch) | {"contrast": self.hparams.contrast * contrast}
