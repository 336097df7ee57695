"""Domain-adversarial training."""

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from crosstail.algorithms._algorithm import Backward, Task, descend
from crosstail.algorithms._hparams import FINETUNED_RATE, Choice, LogUniform, Rounded, hp
from crosstail.algorithms.erm import ERM
from crosstail.backbones import Backbone
from crosstail.data import DomainBatch


class DANN(ERM):
    """DANN: features from which a discriminator cannot tell the domain (Ganin et al., 2016).

    The discriminator minimises its cross-entropy L_d, backbone and classifier minimise cross-entropy − λ L_d.
    """

    family = "invariance"
    min_domains = 2
    differs: tuple[str, ...] = (
        "it tells all training domains apart, not a source from a target",
        "the discriminator takes its own steps on a batch's features before the others take theirs, where the paper "
        "has one joint step and DomainBed alternates over batches",
        "λ does not rise during training",
        "Adam with β₂ = 0.9 instead of SGD, and a gradient penalty for the discriminator alone, after DomainBed",
    )

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        """The weight of the adversary, and how it is trained."""

        adversary: float = hp(1.0, LogUniform(1e-2, 1e2), "λ, weight of the discriminator's loss for the backbone")
        discriminator_lr: float = hp(
            1e-3, LogUniform(10**-4.5, 10**-2.5), "learning rate of the discriminator", FINETUNED_RATE
        )
        discriminator_decay: float = hp(0.0, LogUniform(1e-6, 1e-2), "weight decay of the discriminator")
        discriminator_steps: int = hp(1, Rounded(1, 8), "steps of the discriminator per step of the backbone")
        gradient_penalty: float = hp(0.0, LogUniform(1e-2, 1e1), "weight of its squared gradient by the features")
        beta1: float = hp(0.5, Choice(0.0, 0.5), "β₁ of Adam, for the discriminator and for the others")

    def __init__(self, backbone: Backbone, task: Task, hparams: Any) -> None:
        super().__init__(backbone, task, hparams)
        trained = task.counts.sum(1) > 0
        self.place: Tensor
        self.register_buffer("place", trained.cumsum(0) - 1, persistent=False)  # of a domain among those trained on
        layers = nn.Linear(backbone.num_features, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()
        self.discriminator = nn.Sequential(*layers, nn.Linear(256, int(trained.sum())))

    def optimizers(self) -> list[Optimizer]:
        """One Adam for backbone and classifier, one for the discriminator."""
        own, h = [*self.backbone.parameters(), *self.head.parameters()], self.hparams
        return [
            Adam(own, lr=h.lr, betas=(h.beta1, 0.9), weight_decay=h.weight_decay),
            Adam(
                self.discriminator.parameters(),
                lr=h.discriminator_lr,
                betas=(h.beta1, 0.9),
                weight_decay=h.discriminator_decay,
            ),
        ]

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """So many steps of the discriminator, and one of the others against it, on the same features."""
        generator, discriminator = optimizers
        z, batch = self.features(batch)
        fixed = z.detach().requires_grad_()
        told: dict[str, Tensor] = {}
        for _ in range(self.hparams.discriminator_steps):
            errors = self.errors(fixed, batch)
            told = {"discriminator": self.mean(errors, batch)}
            if self.hparams.gradient_penalty:
                (slope,) = torch.autograd.grad(errors.sum(), fixed, create_graph=True)
                told["gradient_penalty"] = self.hparams.gradient_penalty * slope.square().sum(1).mean()
            descend(told, [discriminator], backward)
        adversary = -self.hparams.adversary * self.mean(self.errors(z, batch), batch)
        terms = self.losses(z, batch) | {"adversary": adversary}
        descend(terms, [generator], backward)
        return terms | told

    def errors(self, z: Tensor, batch: DomainBatch) -> Tensor:
        """The discriminator's cross-entropy for every sample (B,)."""
        return F.cross_entropy(self.discriminator(z), self.place[batch.domain], reduction="none")

    def mean(self, errors: Tensor, batch: DomainBatch) -> Tensor:
        """The discriminator's loss from its errors (B,)."""
        return errors.mean()
