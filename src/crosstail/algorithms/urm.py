import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from crosstail.algorithms._base import ERM, Backward, DomainBatch, LogUniform, Uniform, descend, hp


class URM(ERM):
    """URM: features that a discriminator cannot tell from uniform noise (Krishnamachari et al., 2024)."""

    family = "regularisation"
    differs = (
        "the features are the backbone's, and the noise is uniform between 0 and 1, as with DomainBed's `relu`; "
        "its default adds a tanh, with noise between −1 and 1",
        "one hidden layer after the first, DomainBed's default; it searches 1 to 3",
    )

    class Hparams(ERM.Hparams):
        adversary: float = hp(0.1, Uniform(0.0, 0.2), "λ, weight of the adversarial loss")
        discriminator_lr: float = hp(
            1e-3,
            LogUniform(10**-5.5, 10**-3.5),
            "learning rate of the discriminator",
            (5e-5, LogUniform(1e-6, 10**-4.5)),
        )

    def build(self) -> None:
        super().build()
        layers = nn.Linear(self.backbone.num_features, 100), nn.LeakyReLU(), nn.Linear(100, 100), nn.LeakyReLU()
        self.discriminator = nn.Sequential(*layers, nn.Linear(100, 1))

    def optimizers(self) -> list[Optimizer]:
        h = self.hparams
        own = [*self.backbone.parameters(), *self.head.parameters()]
        return [
            Adam(own, lr=h.lr, weight_decay=h.weight_decay),
            Adam(self.discriminator.parameters(), lr=h.discriminator_lr, weight_decay=h.weight_decay),
        ]

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """A step of backbone and classifier, then one of the discriminator on the same features."""
        generator, discriminator = optimizers
        z, batch = self.features(batch)
        terms = self.losses(z, batch) | {"adversary": self.hparams.adversary * error(self.discriminator(z), 1.0)}
        descend(terms, [generator], backward)
        noise, fake = self.discriminator(torch.cat([torch.rand(z.shape).to(z), z.detach()])).chunk(2)
        told = {"discriminator": error(noise, 1.0) + self.hparams.adversary * error(fake, 0.0)}
        descend(told, [discriminator], backward)
        return terms | told


def error(scores: Tensor, label: float) -> Tensor:
    """Mean binary cross-entropy; the label of noise is 1."""
    return F.binary_cross_entropy_with_logits(scores, torch.full_like(scores, label))
