import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms._base import ERM, Choice, DomainBatch, LogUniform, Uniform, hp


class Transfer(ERM):
    """Transfer: cross-entropy + λ · the largest gap between domains' risks of a classifier nearby (Zhang et al., 2021).

    The gap is max_d R_d(h) − min_d R_d(h); h is found by gradient ascent from the classifier, within distance δ of it.
    """

    family = "invariance"
    adds_term = True
    reads_weights = True
    min_domains = 2
    differs = (
        "the nearby classifier is found on the features of the batch before a joint step on both terms; in DomainBed, "
        "there is a step per term, the second with the classifier found on the last batch",
        "trials train the network; all but the first of DomainBed have an optimizer for the nearby classifier only",
    )

    class Hparams(ERM.Hparams):
        penalty: float = hp(1.0, LogUniform(1e-2, 1e1), "λ, weight of the gap")
        radius: float = hp(2.0, Uniform(0.1, 3.0), "δ, largest distance of the nearby classifier")
        ascent_steps: int = hp(10, Choice(1, 2, 5), "steps of gradient ascent")
        ascent_lr: float = hp(1e-3, LogUniform(10**-4.5, 10**-2.5), "learning rate of gradient ascent")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        start = torch.cat([self.linear.weight, self.linear.bias[:, None]], 1).detach()  # (C, F + 1)
        x, nearby = F.pad(z, (0, 1), value=1.0), start
        for _ in range(self.hparams.ascent_steps):
            change = nearby + self.hparams.ascent_lr * self.hparams.penalty * slope(x.detach(), batch, nearby) - start
            nearby = start + change * (self.hparams.radius / change.norm().clamp_min(1e-30)).clamp(max=1)
        risks = risks_of(x @ nearby.mT, batch)
        return super().losses(z, batch) | {"gap": self.hparams.penalty * (risks.amax() - risks.amin())}


def risks_of(scores: Tensor, batch: DomainBatch) -> Tensor:
    """Mean cross-entropy of every domain (K,)."""
    return batch.by_domain(F.cross_entropy(scores, batch.y, reduction="none")).mean(1)


def slope(x: Tensor, batch: DomainBatch, weights: Tensor) -> Tensor:
    """Gradient (C, F + 1) of the gap in the weights: the worst domain's mean of (p − one-hot y) xᵀ − the best one's."""
    scores = x @ weights.mT
    risks = risks_of(scores, batch)
    sign = F.one_hot(risks.argmax(), len(risks)) - F.one_hot(risks.argmin(), len(risks))
    error = batch.by_domain(scores.softmax(1) - F.one_hot(batch.y, scores.shape[1]))  # (K, n, C)
    return (sign[:, None, None] * error.to(x) / error.shape[1]).flatten(0, 1).mT @ x
