from torch import Tensor

from crosstail.algorithms._gradients import DomainGradients
from crosstail.algorithms._hparams import Uniform, hp


class ANDMask(DomainGradients):
    """ANDMask: update a weight only if the signs of the domains' gradients agree (Parascandolo et al., 2021).

    The mean gradient is masked where |mean sign| < τ, and divided by the share of weights that are not masked.
    """

    differs = ("the division by the share of unmasked weights, per tensor, is from the paper's code and DomainBed",)

    class Hparams(DomainGradients.Hparams):
        tau: float = hp(1.0, Uniform(0.5, 1.0), "τ, agreement that an update requires; 1: all domains")

    def combine(self, gradients: Tensor) -> Tensor:
        agreed = (gradients.sign().mean(0).abs() >= self.hparams.tau).to(gradients)
        return agreed * gradients.mean(0) / (1e-10 + agreed.mean())
