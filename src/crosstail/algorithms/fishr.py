import torch
from torch import Tensor

from crosstail.algorithms._annealed import SHARE, Annealed
from crosstail.algorithms._base import DomainBatch, LogUniform, Uniform, hp, when
from crosstail.losses.domains import gradient_variance


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
        scores, h = self.head(z), self.hparams
        domain = batch.by_domain(batch.domain)[:, 0]
        variance = gradient_variance(*map(batch.by_domain, (z, scores, batch.y)))
        moved = torch.lerp(variance, self.variances[domain], h.ema)
        self.variances[domain] = moved.detach()
        penalty = (moved / (1 - h.ema)).var(0, correction=0).mean()
        weight = h.penalty if self.annealed else 0.0
        return {"cross_entropy": self.likelihood(scores, batch.y), "fishr": weight * penalty}
