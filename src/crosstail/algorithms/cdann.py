"""Class-conditional domain-adversarial training."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from crosstail.algorithms._algorithm import Task
from crosstail.algorithms.dann import DANN
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch


class CDANN(DANN):
    """CDANN: features from which a discriminator that knows the class cannot tell the domain (Li et al., 2018).

    Where classes are not equally frequent in all domains, DANN also asks for features that hide the class. Here every
    domain of a class has the same weight, and so has every class: 1 / (classes · domains of c · samples of (d, c)).
    """

    differs = (
        *DANN.differs,
        "one discriminator that is given the class, as in DomainBed, instead of one for each class, and without the "
        "paper's class-prior-normalised one",
        "domains and classes are balanced within the batch; a class that only one domain of the batch has is left out, "
        "since there is nothing to align",
    )

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        self.embedding = nn.Embedding(task.num_classes, backbone.num_features)

    def optimizers(self) -> list[Optimizer]:
        """The embedding is a part of the discriminator."""
        generator, discriminator = super().optimizers()
        discriminator.add_param_group({"params": self.embedding.parameters()})
        return [generator, discriminator]

    def errors(self, z: Tensor, batch: DomainBatch) -> Tensor:
        """The class is added to the features."""
        return super().errors(z + self.embedding(batch.y), batch)

    def mean(self, errors: Tensor, batch: DomainBatch) -> Tensor:
        """Over the classes that are in two domains or more of the batch, over their domains, over the samples."""
        size = self.task.counts.shape
        counts = torch.bincount(batch.domain * size[1] + batch.y, minlength=size.numel()).reshape(size)
        domains = (counts > 0).sum(0)
        shared = domains > 1
        parts = (shared.sum() * domains * counts)[batch.domain, batch.y].clamp_min(1)
        return (shared[batch.y] * errors / parts).sum()
