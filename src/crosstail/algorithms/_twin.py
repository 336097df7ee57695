"""Algorithms with a second network, which says how much a sample counts."""

from copy import deepcopy
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from crosstail.algorithms._algorithm import Task
from crosstail.algorithms.erm import ERM
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch


class Twin(ERM):
    """Mean of w · cross-entropy; `update` of a subclass sets the weights w (B,) by a second network."""

    family = "robust optimisation"
    sample_weights: Tensor | float = 1.0

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        self.twin = deepcopy(backbone)
        self.twin_head = nn.Linear(backbone.num_features, task.num_classes)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        each = F.cross_entropy(self.head(z), batch.y, reduction="none")
        return {"cross_entropy": (self.sample_weights * each).mean()}
