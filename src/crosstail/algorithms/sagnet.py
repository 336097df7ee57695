import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from crosstail.algorithms._base import ERM, Backward, DomainBatch, LogUniform, descend, hp


class SagNet(ERM):
    """SagNet: classify by content under mixed styles, and make style uninformative (Nam et al., 2021).

    A feature vector's style is its mean and standard deviation; its content is the normalised vector. A second
    classifier learns the class from style, on shuffled content, and the backbone learns to make its scores uniform.
    """

    family = "augmentation"
    adds_term = True
    passes = 2.0
    differs = (
        "style statistics are of the feature vector, not of feature maps in the backbone, as in DomainBed",
        "standard deviations are mixed, as in the paper; its code and DomainBed mix unbiased variances",
        "the style classifier and its adversary use the same shuffled content; DomainBed shuffles it again",
        "Adam instead of SGD",
    )

    class Hparams(ERM.Hparams):
        adversary: float = hp(0.1, LogUniform(1e-2, 1e1), "weight of the adversarial loss")

    def build(self) -> None:
        super().build()
        self.style = nn.Linear(self.backbone.num_features, self.task.num_classes)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Cross-entropy with each sample's style interpolated towards another, random sample's."""
        content, mean, deviation = content_and_style(z)
        other, alpha = torch.randperm(len(z)), torch.rand(len(z), 1).to(z)
        mean, deviation = (torch.lerp(value[other], value, alpha) for value in (mean, deviation))
        return super().losses(content * deviation + mean, batch)

    def update(self, batch: DomainBatch, optimizers: list[Optimizer], backward: Backward) -> dict[str, Tensor]:
        """Step backbone and classifier, then the style classifier, then the backbone against it."""
        terms = super().update(batch, optimizers, backward)
        z, batch = self.features(batch)
        content, mean, deviation = content_and_style(z)
        mixed = content[torch.randperm(len(batch))].detach() * deviation + mean
        told = {"style": self.likelihood(self.style(mixed.detach()), batch.y)}
        descend(told, optimizers, backward)
        scores = F.linear(mixed, self.style.weight.detach(), self.style.bias.detach())
        adversary = {"adversary": -self.hparams.adversary * F.log_softmax(scores, 1).mean()}
        descend(adversary, optimizers, backward)
        return terms | told | adversary


def content_and_style(z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Normalised vectors (B, F), their means and standard deviations (B, 1)."""
    variance, mean = torch.var_mean(z, 1, correction=0, keepdim=True)
    deviation = (variance + 1e-5).sqrt()
    return (z - mean) / deviation, mean, deviation
