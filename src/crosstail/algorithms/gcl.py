import torch
from torch import Tensor

from crosstail.algorithms._base import ERM, Choice, DomainBatch, Uniform, hp
from crosstail.algorithms.ldam import Cosine


class GCL(ERM):
    """GCL: lower cosines by |noise|, the more the rarer the class, to make room for rare classes (Li et al., 2022).

    cos_k − σ |ε_k| (log n_max − log n_k) / (log n_max − log n_min), with ε_k ~ N(0, 1/3²) cut off at ±1.
    """

    family = "imbalance"
    linear_head = False
    differs = (
        "n is the count of each class in the sample's domain; absent classes count as 1",
        "no classifier retrained on effective numbers of samples: `--second-stage` has several",
        "the margin of the label is 0, as in the paper's settings",
    )
    rarity: Tensor  # (D, C), 0 for the most frequent class, 1 for the rarest

    class Hparams(ERM.Hparams):
        noise: float = hp(0.5, Uniform(0.1, 1.0), "σ, size of the noise of the rarest class")
        scale: float = hp(30.0, Choice(10.0, 30.0), "scale of the cosines")

    def build(self) -> None:
        super().build()
        self.head = Cosine(self.backbone.num_features, self.task.num_classes, self.hparams.scale)
        log = self.task.counts.clamp(min=1).log()
        rarity = log.amax(1, keepdim=True) - log
        self.register_buffer("rarity", rarity / rarity.amax(1, keepdim=True).clamp_min(1e-12), persistent=False)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        scores = self.head(z)
        cloud = (torch.randn(scores.shape).to(scores) / 3).clamp(-1, 1).abs() * self.rarity[batch.domain]
        return {"cross_entropy": self.likelihood(scores - self.hparams.scale * self.hparams.noise * cloud, batch.y)}
