import math
from copy import deepcopy

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp


class MIRO(ERM):
    """MIRO: keep the features informative about the pretrained network's (Cha et al., 2022).

    Cross-entropy + λ/2 · mean of log σ² + (z − z₀)² / σ², with the pretrained features z₀ and a learnt σ² per feature.
    It is meant for finetuning: with random initialisation, z₀ carry little information.
    """

    family = "regularisation"
    adds_term = True
    passes = 1.33  # z₀ need a forward pass, a third of the work
    unshared = "its loss uses the inputs of the whole batch, which no process has"
    differs = (
        "features of the last layer only; the paper has a term for every stage of the network",
        "σ² has the learning rate of the network; the paper's is ten times as high",
    )

    class Hparams(ERM.Hparams):
        information: float = hp(0.1, LogUniform(1e-2, 1.0), "λ, weight of the term")

    def build(self) -> None:
        super().build()
        self.pretrained = deepcopy(self.backbone).requires_grad_(False)
        self.spread = nn.Parameter(torch.full((self.backbone.num_features,), math.log(math.expm1(0.1))))  # σ² = 0.1

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        self.pretrained.eval()
        with torch.no_grad():
            before = self.pretrained(batch.x)
        variance = F.softplus(self.spread) + 1e-5
        term = (variance.log() + (z - before).square() / variance).mean() / 2
        return super().losses(z, batch) | {"information": self.hparams.information * term}
