"""Self-supervised pre-training."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from crosstail.algorithms._algorithm import Backward, Task, descend
from crosstail.algorithms._hparams import Uniform, hp
from crosstail.algorithms.erm import ERM
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch


class SSP(ERM):
    """SSP: the backbone first learns without labels, then ERM goes on from there (Yang and Xu, 2020).

    Images: by how many quarters was this one turned? Vectors: which of these, in which 60 % of the values are those of
    other samples, was made from this one (SCARF; Bahri et al., 2022)?
    """

    family = "imbalance"
    passes = 2.0  # at most: vectors are seen twice while it learns without labels, images once
    unshared = "without labels, it tells the samples of a whole batch apart, and no process has all of them"
    differs = (
        "the first steps are taken from those of the run, so that it costs no more than ERM on images",
        "vectors, which cannot be turned, are compared with corrupted copies of themselves",
    )

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        """How long it learns without labels."""

        pretraining: float = hp(0.3, Uniform(0.1, 0.5), "share of the steps without labels")

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        self.turn_head = nn.Linear(backbone.num_features, 4)
        self.copy_head = nn.Linear(backbone.num_features, 128)

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """One step without labels, or later one of ERM, with the terms that are added to it."""
        if self.step >= self.hparams.pretraining * self.steps:
            return super().update(batch, optimizers, backward)
        pretext = self.tell_turns if batch.x.ndim == 4 else self.find_copies
        terms = {"self_supervision": pretext(batch.x)}
        descend(terms, optimizers, backward)
        return terms

    def tell_turns(self, x: Tensor) -> Tensor:
        """Cross-entropy of the number of quarters; images that are not square are left or turned by two."""
        least = 1 if x.shape[2] == x.shape[3] else 2
        quarters = least * torch.randint(4 // least, (len(x),)).to(x.device)
        return F.cross_entropy(self.turn_head(self.backbone(turned(x, quarters))), quarters)

    def find_copies(self, x: Tensor) -> Tensor:
        """Cross-entropy of the copy's number, the scores being cosines."""
        z = F.normalize(self.copy_head(self.backbone(torch.cat([x, corrupted(x)]))))
        return F.cross_entropy(z[: len(x)] @ z[len(x) :].mT, torch.arange(len(x), device=x.device))


def turned(x: Tensor, quarters: Tensor) -> Tensor:
    """Each image (B, 3, H, W) turned to the left by its number of quarters (B,)."""
    q = quarters[:, None, None, None]
    if x.shape[2] == x.shape[3]:
        x = torch.where(q % 2 == 1, x.mT, x)
    x = torch.where((q == 1) | (q == 2), x.flip(2), x)
    return torch.where(q >= 2, x.flip(3), x)


def corrupted(x: Tensor, share: float = 0.6) -> Tensor:
    """Vectors (B, F) with so many of the values, at random places, from random rows of the same column."""
    others = x.gather(0, torch.randint(len(x), x.shape).to(x.device))
    return torch.where(torch.rand(x.shape).to(x.device) < share, others, x)
