import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._annealed import SHARE, Annealed
from crosstail.algorithms._base import DomainBatch, LogUniform, Uniform, hp, when
from crosstail.losses.host import in_full_precision


class Fishr(Annealed):
    """Fishr: match the variances of the classifier's per-sample gradients between domains (Rame et al., 2022).

    For a linear classifier, the gradient of a sample's cross-entropy is (p − one-hot y) (z, 1)ᵀ. The penalty is the
    mean squared difference between a domain's variances v_d, moving averages, and their mean over the domains.
    """

    family = "invariance"
    min_domains = 2
    differs = (
        "the penalty is a mean over the classifier's weights, and the moving average is divided by 1 − ema, as in the "
        "paper's code and DomainBed",
        "Adam is reset when the penalty takes effect, as in DomainBed",
        SHARE,
    )

    class Hparams(Annealed.Hparams):
        penalty: float = hp(1000.0, LogUniform(1e1, 1e4), "λ, weight of the penalty after annealing")
        anneal: float = when(0.3, Uniform(0.0, 1.0), "when the penalty starts")
        ema: float = hp(0.95, Uniform(0.9, 0.99), "weight of the old variances in the moving average", below=1)

    variances: Tensor  # (D, C, F + 1), times 1 − ema

    def build(self) -> None:
        super().build()
        self.register_buffer("variances", torch.zeros(*self.task.counts.shape, self.backbone.num_features + 1))

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        scores = self.head(z)
        error = batch.by_domain(scores.softmax(1) - F.one_hot(batch.y, scores.shape[1]))  # (K, n, C)
        domain, h = batch.by_domain(batch.domain)[:, 0], self.hparams
        with in_full_precision(z):
            variance = gradient_variance(error.to(self.variances), batch.by_domain(z).to(self.variances))
            moved = torch.lerp(variance, self.variances[domain], h.ema)
            self.variances[domain] = moved.detach()
            penalty = (moved / (1 - h.ema)).var(0, correction=0).mean()
        weight = h.penalty if self.annealed else 0.0
        return {"cross_entropy": self.likelihood(scores, batch.y), "fishr": weight * penalty}


def gradient_variance(error: Tensor, z: Tensor) -> Tensor:
    """Variance over n samples of the products of errors (K, n, C) and features (K, n, F) with a 1: (K, C, F + 1)."""
    z = F.pad(z, (0, 1), value=1.0)
    return (error.square().mT @ z.square() - (error.mT @ z).square() / z.shape[1]) / z.shape[1]
