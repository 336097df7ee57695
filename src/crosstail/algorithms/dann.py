import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from crosstail.algorithms._base import ERM, Backward, Choice, DomainBatch, LogUniform, descend, hp, slopes
from crosstail.algorithms._hparams import FINETUNED_RATE, LogInteger


class DANN(ERM):
    """DANN: features that hide the domain from a discriminator (Ganin et al., 2016).

    The discriminator minimises its cross-entropy L_d, backbone and classifier minimise cross-entropy − λ L_d.
    """

    family = "invariance"
    min_domains = 2
    differs: tuple[str, ...] = (
        "it discriminates between all training domains, not between source and target",
        "the discriminator is updated on a batch's features before backbone and classifier, where the paper has one "
        "joint step and DomainBed alternates over batches",
        "λ is constant during training",
        "Adam with β₂ = 0.9 instead of SGD, and a gradient penalty on the discriminator, as in DomainBed; there the "
        "backbone also learns to increase the penalty, and in the BoDA code it is one on the discriminator's "
        "probabilities",
        "the discriminator has two hidden layers of 256 units, DomainBed's default; DomainBed also searches its width, "
        "depth and dropout, which the table of the BoDA paper does not list",
    )

    class Hparams(ERM.Hparams):
        adversary: float = hp(1.0, LogUniform(1e-2, 1e2), "λ, weight of the adversarial loss")
        discriminator_lr: float = hp(
            1e-3, LogUniform(10**-4.5, 10**-2.5), "learning rate of the discriminator", FINETUNED_RATE
        )
        discriminator_decay: float = hp(0.0, LogUniform(1e-6, 1e-2), "weight decay of the discriminator")
        discriminator_steps: int = hp(1, LogInteger(1, 8), "steps of the discriminator per step of the backbone")
        gradient_penalty: float = hp(
            0.0, LogUniform(1e-2, 1e1), "weight of the discriminator's squared gradient in the features"
        )
        beta1: float = hp(0.5, Choice(0.0, 0.5), "β₁ of Adam, in both optimizers")

    def build(self) -> None:
        super().build()
        trained = self.task.counts.sum(1) > 0
        self.place: Tensor
        self.register_buffer("place", trained.cumsum(0) - 1, persistent=False)  # index among the training domains
        layers = nn.Linear(self.backbone.num_features, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU()
        self.discriminator = nn.Sequential(*layers, nn.Linear(256, int(trained.sum())))

    def optimizers(self) -> list[Optimizer]:
        h = self.hparams
        own, other = [*self.backbone.parameters(), *self.head.parameters()], self.discriminator.parameters()
        return [
            Adam(own, lr=h.lr, betas=(h.beta1, 0.9), weight_decay=h.weight_decay),
            Adam(other, lr=h.discriminator_lr, betas=(h.beta1, 0.9), weight_decay=h.discriminator_decay),
        ]

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """Steps of the discriminator, then one of backbone and classifier against it, on the same features."""
        generator, discriminator = optimizers
        z, batch = self.features(batch)
        told = self.discriminate(z, batch, discriminator, backward)
        terms = self.losses(z, batch) | {"adversary": self.adversary(z, batch)}
        descend(terms, [generator], backward)
        return terms | told

    def discriminate(
        self, z: Tensor, batch: DomainBatch, discriminator: Optimizer, backward: Backward
    ) -> dict[str, Tensor]:
        """Steps of the discriminator on fixed features; the terms of the last one."""
        fixed = z.detach().requires_grad_()
        told: dict[str, Tensor] = {}
        for _ in range(self.hparams.discriminator_steps):
            errors = self.errors(fixed, batch)
            told = {"discriminator": self.mean(errors, batch)}
            if self.hparams.gradient_penalty:
                (slope,) = slopes(errors.sum(), [fixed], create_graph=True)
                told["gradient_penalty"] = self.hparams.gradient_penalty * slope.square().sum(1).mean()
            descend(told, [discriminator], backward)
        return told

    def adversary(self, z: Tensor, batch: DomainBatch) -> Tensor:
        """The term of backbone and classifier against the discriminator."""
        return -self.hparams.adversary * self.mean(self.errors(z, batch), batch)

    def errors(self, z: Tensor, batch: DomainBatch) -> Tensor:
        """Cross-entropy of the discriminator per sample (B,)."""
        return F.cross_entropy(self.discriminator(z), self.place[batch.domain], reduction="none")

    def mean(self, errors: Tensor, batch: DomainBatch) -> Tensor:
        """Reduce the errors (B,) to a loss."""
        return errors.mean()
