import torch
from torch import Tensor

from crosstail.algorithms._gradients import DomainGradients
from crosstail.algorithms._hparams import LogUniform, Uniform, hp


class SANDMask(DomainGradients):
    """SANDMask: a smooth ANDMask, which also weighs down gradients that vary between domains (Shahtalebi et al., 2021).

    The mask is max(0, tanh(k (|mean sign| − τ) / variance)); the result is divided by its mean.
    """

    differs = (
        "τ is 0.5 by default: with DomainBed's 1 the mask is always 0, and nothing is learnt",
        "the result is divided by the mean of the mask, per tensor, as in DomainBed",
    )

    class Hparams(DomainGradients.Hparams):
        tau: float = hp(0.5, Uniform(0.0, 1.0), "τ, agreement of signs below which a weight is not updated")
        steepness: float = hp(10.0, LogUniform(1e-3, 1e5), "k, how steeply the mask rises")

    def combine(self, gradients: Tensor) -> Tensor:
        agreement = gradients.sign().mean(0).abs() - self.hparams.tau
        variance = gradients.var(0).clamp_min(torch.finfo(gradients.dtype).tiny)
        mask = (self.hparams.steepness * agreement / variance).tanh().clamp_min(0)
        return mask * gradients.mean(0) / (1e-10 + mask.mean())
