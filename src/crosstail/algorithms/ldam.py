import torch.nn.functional as F
from torch import Tensor, nn

from crosstail.algorithms._base import ERM, Choice, DomainBatch, LogUniform, hp
from crosstail.losses.tails import averaging_one, ldam_loss, over_effective_number


class LDAM(ERM):
    """LDAM: cosine classifier with margins ∝ n^(−1/4); late in training, rare classes weigh more (Cao et al., 2019)."""

    family = "imbalance"
    linear_head = False
    differs = (
        "n is the count of the sample's class in its domain, and the rarest pair has the margin max_m; in the BoDA "
        "code, the rarest class of each domain has it",
        "the deferred weights of a domain's samples average 1, and the loss is divided by the number of samples; the "
        "paper's code divides by the sum of the batch's weights",
        "the cosine classifier and the deferred weights are the paper's; the BoDA code has neither",
    )
    weights: Tensor  # (D, C)

    class Hparams(ERM.Hparams):
        max_m: float = hp(0.5, LogUniform(10**-1, 10**-0.1), "largest margin")
        scale: float = hp(30.0, Choice(10.0, 30.0), "scale of the cosines")
        defer: float = hp(0.8, None, "share of the steps after which rare classes weigh more")

    def build(self) -> None:
        super().build()
        self.head = Cosine(self.backbone.num_features, self.task.num_classes, self.hparams.scale)
        weights = averaging_one(over_effective_number(self.counts, beta=0.9999), self.counts)
        self.register_buffer("weights", weights, persistent=False)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        h, deferred = self.hparams, self.step >= self.hparams.defer * self.steps
        options = {"max_m": h.max_m, "scale": h.scale, "weights": self.weights if deferred else None}
        return {"cross_entropy": ldam_loss(self.head(z), batch.y, batch.domain, self.counts, **options)}


class Cosine(nn.Linear):
    """A classifier whose scores are scaled cosines of features and class vectors."""

    def __init__(self, num_features: int, num_classes: int, scale: float) -> None:
        super().__init__(num_features, num_classes, bias=False)
        self.scale = scale

    def forward(self, z: Tensor) -> Tensor:
        return self.scale * F.linear(F.normalize(z), F.normalize(self.weight))
