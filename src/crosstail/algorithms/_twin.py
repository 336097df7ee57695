"""Algorithms with a second network, which says how much a sample counts."""

from copy import deepcopy

import torch.nn.functional as F
from torch import Tensor, nn

from crosstail.algorithms._base import ERM, DomainBatch


class Twin(ERM):
    """Mean of w · cross-entropy; `update` of a subclass sets the weights w (B,) by a second network."""

    family = "robust optimisation"
    sample_weights: Tensor | float = 1.0

    def build(self) -> None:
        super().build()
        self.twin = deepcopy(self.backbone)
        self.twin_head = nn.Linear(self.backbone.num_features, self.task.num_classes)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        each = F.cross_entropy(self.head(z), batch.y, reduction="none")
        return {"cross_entropy": (self.sample_weights * each).mean()}
