import math

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._base import ERM, Choice, DomainBatch, hp


class LabelAwareSmoothing(ERM):
    """LabelAwareSmoothing: smooth labels of frequent classes more, as those are overconfident (Zhong et al., 2021).

    The label has the target 1 − ε, the other classes share ε; with n between the rarest n_K and the most frequent n_1,
    ε = ε_K + (ε_1 − ε_K) sin(π (n − n_K) / (2 (n_1 − n_K))).
    """

    family = "imbalance"
    differs = (
        "n is the count of the sample's class in its domain",
        "the other classes share ε, as in the paper; its code spreads ε over all classes, the label's included",
        "the whole network is trained with it; the paper uses it for the classifier, after mixup training",
    )
    smoothing: Tensor  # (D, C)

    class Hparams(ERM.Hparams):
        frequent: float = hp(0.3, Choice(0.2, 0.3, 0.4), "ε_1, smoothing of the most frequent class")
        rare: float = hp(0.0, Choice(0.0, 0.1), "ε_K, smoothing of the rarest class")

    def build(self) -> None:
        super().build()
        counts, h = self.task.counts.double(), self.hparams
        largest, smallest = counts.amax(1, keepdim=True), counts.where(counts > 0, math.inf).amin(1, keepdim=True)
        place = ((counts - smallest) / (largest - smallest)).nan_to_num(1.0).clamp(0, 1)  # equal counts: all frequent
        smoothing = h.rare + (h.frequent - h.rare) * (place * math.pi / 2).sin()
        self.register_buffer("smoothing", smoothing.to(torch.get_default_dtype()), persistent=False)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        errors = -F.log_softmax(self.head(z).to(self.smoothing), 1)  # (B, C)
        own, smoothing = errors.gather(1, batch.y[:, None])[:, 0], self.smoothing[batch.domain, batch.y]
        others = (errors.sum(1) - own) / max(errors.shape[1] - 1, 1)
        return {"cross_entropy": torch.lerp(own, others, smoothing).mean()}
