"""What every algorithm is: a backbone, a classifier, named loss terms, and what it needs from the loop."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from crosstail.algorithms._hparams import LogUniform, hp
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch
from crosstail.losses import PairStatistics


@dataclass(frozen=True)
class Task:
    """What an algorithm may know of the data beforehand: its size and the training counts (D, C)."""

    counts: Tensor

    @property
    def num_domains(self) -> int:
        return self.counts.shape[0]

    @property
    def num_classes(self) -> int:
        return self.counts.shape[1]


class Algorithm(nn.Module):
    """One way to train `backbone` and `head`; a subclass says which loss terms it has.

    `class_balanced` asks the loop for batches in which a domain's classes are equally frequent; `refresh_due` asks
    for a full pass over the training set, whose statistics then arrive in `refresh`. `step` is the number of the
    current step; the loop sets it.
    """

    @dataclass(frozen=True, kw_only=True)
    class Hparams:
        """What all algorithms have."""

        lr: float = hp(1e-3, LogUniform(10**-4.5, 10**-2.5), "learning rate of Adam")
        weight_decay: float = hp(0.0, LogUniform(1e-6, 1e-2), "weight decay of Adam")

    class_balanced = False
    step = 0

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__()
        self.task = task
        self.hparams = hparams
        self.backbone = backbone
        self.head = nn.Linear(backbone.num_features, task.num_classes)

    def losses(self, batch: DomainBatch) -> dict[str, Tensor]:
        """The terms whose sum is minimised, by name."""
        raise TypeError(f"{type(self).__name__} must define losses(batch)")

    def optimizers(self) -> list[Optimizer]:
        """Who updates the parameters; by default one Adam for all of them."""
        return [torch.optim.Adam(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)]

    def update(
        self, batch: DomainBatch, optimizers: list[Optimizer], backward: Callable[[Tensor], None]
    ) -> dict[str, Tensor]:
        """One step: the sum of the terms, backwards, and on."""
        terms = self.losses(batch)
        for optimizer in optimizers:
            optimizer.zero_grad(set_to_none=True)
        backward(torch.stack(list(terms.values())).sum())
        for optimizer in optimizers:
            optimizer.step()
        return terms

    def refresh_due(self, step: int) -> bool:
        """Whether the loop should make a full pass over the training features before this step."""
        return False

    def refresh(self, statistics: PairStatistics) -> None:
        """Take in the exact statistics of a full pass."""

    def statistics(self) -> PairStatistics:
        """Empty statistics of the kind that `refresh` wants."""
        return PairStatistics(self.task.num_domains, self.task.num_classes, self.backbone.num_features)

    def forward(self, x: Tensor) -> Tensor:
        """Class scores (B, C); the domain is not needed."""
        return self.head(self.backbone(x))
