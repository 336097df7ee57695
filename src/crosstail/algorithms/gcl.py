from torch import Tensor

from crosstail.algorithms._base import ERM, Choice, DomainBatch, Uniform, hp
from crosstail.algorithms.ldam import Cosine
from crosstail.losses.tails import gcl_loss


class GCL(ERM):
    """GCL: lower cosines by |noise|, the more the rarer the class, to make room for rare classes (Li et al., 2022)."""

    family = "imbalance"
    linear_head = False
    differs = (
        "n is the count of each class in the sample's domain; absent classes count as 1",
        "no classifier retrained on effective numbers of samples: `--second-stage` has several",
        "the margin of the label is 0, as in the paper's settings",
    )

    class Hparams(ERM.Hparams):
        noise: float = hp(0.5, Uniform(0.1, 1.0), "σ, size of the noise of the rarest class")
        scale: float = hp(30.0, Choice(10.0, 30.0), "scale of the cosines")

    def build(self) -> None:
        super().build()
        self.head = Cosine(self.backbone.num_features, self.task.num_classes, self.hparams.scale)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        options = {"noise": self.hparams.noise, "scale": self.hparams.scale}
        return {"cross_entropy": gcl_loss(self.head(z), batch.y, batch.domain, self.counts, **options)}
