"""What every algorithm is: a backbone, a classifier, named loss terms, and what it needs from the loop."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.checkpoint import checkpoint

from crosstail.algorithms._hparams import FINETUNED_RATE, LogUniform, hp
from crosstail.algorithms._processes import joined
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch
from crosstail.losses import PairStatistics

Backward = Callable[[Tensor], None]
"""What computes the gradients: `Tensor.backward`, or that of the device's strategy and precision."""


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

    What it needs is declared beside it: batches in which a domain's classes are equally frequent (`class_balanced`), a
    number of domains with training data (`min_domains`). `refresh_due` asks for a full pass over the training set,
    whose statistics then arrive in `refresh`. The loop sets `step`, the number of the current step, and `steps`, the
    number of steps in all; the backbone processes a batch in `chunks` parts.
    """

    @dataclass(frozen=True, kw_only=True)
    class Hparams:
        """What all algorithms have."""

        lr: float = hp(1e-3, LogUniform(10**-4.5, 10**-2.5), "learning rate of Adam", FINETUNED_RATE)
        weight_decay: float = hp(0.0, LogUniform(1e-6, 1e-2), "weight decay of Adam")

    family = "own"
    passes = 1.0  # forward and backward passes over the batch that a step needs by definition
    class_balanced = False
    alias_of = ""  # the method that this name stands for, such as erm:retrain
    min_domains = 1
    alone = ""  # why BoDA's term cannot be added to it, if so
    unshared = ""  # why several processes cannot train it together, if so
    differs: tuple[str, ...] = ()  # from its paper, one sentence each, for docs/algorithms.md
    step, steps = 0, 1
    chunks = 1

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__()
        self.task = task
        self.hparams = hparams
        self.backbone = backbone
        self.head: nn.Module = nn.Linear(backbone.num_features, task.num_classes)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """The terms whose sum is minimised, by name, from the batch's features (B, F)."""
        raise TypeError(f"{type(self).__name__} must define losses(z, batch)")

    def features(self, batch: DomainBatch) -> tuple[Tensor, DomainBatch]:
        """Features (B, F) and the batch that they belong to; with several processes, those of all of them."""
        if self.chunks == 1:
            return joined(self.backbone(batch.x), batch)
        # What the parts compute on the way is computed again for the gradient instead of being kept.
        parts = [checkpoint(self.backbone, x, use_reentrant=False) for x in batch.x.chunk(self.chunks)]
        return joined(torch.cat(parts), batch)

    def optimizers(self) -> list[Optimizer]:
        """Who updates the parameters; by default one Adam for all of them."""
        return [torch.optim.Adam(self.parameters(), lr=self.hparams.lr, weight_decay=self.hparams.weight_decay)]

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """One step; only an algorithm that is more than a sum of terms has its own."""
        terms = self.losses(*self.features(batch))
        descend(terms, optimizers, backward)
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
        scores: Tensor = self.head(self.backbone(x))
        return scores


def total(terms: dict[str, Tensor]) -> Tensor:
    """The sum that is minimised."""
    return torch.stack(list(terms.values())).sum()


def descend(terms: dict[str, Tensor], optimizers: list[Optimizer], backward: Backward) -> None:
    """The sum of the terms, backwards, and a step of these optimizers."""
    for optimizer in optimizers:
        optimizer.zero_grad(set_to_none=True)
    backward(total(terms))
    for optimizer in optimizers:
        optimizer.step()
    torch.clear_autocast_cache()  # in mixed precision it holds casts of the old weights
