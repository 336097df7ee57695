from torch import Tensor

from crosstail.algorithms._annealed import SHARE, SLOWER, Slowed
from crosstail.algorithms._base import DomainBatch, Uniform, hp, when
from crosstail.losses.domains import rdm_penalties


class RDM(Slowed):
    """RDM: match the distributions of the worst domain's losses and of all losses (Nguyen et al., 2024).

    Cross-entropy + λ MMD²(losses of the worst domain, all losses) + a small penalty on the variances of both.
    """

    family = "invariance"
    min_domains = 2
    differs = (
        "the variances are divided by the number of samples; in DomainBed, by one less",
        "λ and the weight of the variances have one default and range for all data; in DomainBed, λ is smaller on "
        "DomainNet, and the variances have weight 0 for some; batches are also larger there, 88 or 40 per domain",
        SHARE,
        SLOWER,
    )

    class Hparams(Slowed.Hparams):
        penalty: float = hp(5.0, Uniform(0.1, 10.0), "λ, weight of the discrepancy after annealing")
        variance: float = hp(0.004, Uniform(0.001, 0.007), "weight of the variances after annealing")
        anneal: float = when(0.3, Uniform(0.16, 0.54), "when both set in")
        late_lr: float = hp(0.3, Uniform(0.16, 0.4), "learning rate after annealing, relative to that before")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        errors = self.likelihood(self.head(z), batch.y, reduction="none")
        matching, variance = rdm_penalties(errors, batch.groups)
        weights = (self.hparams.penalty, self.hparams.variance) if self.annealed else (0.0, 0.0)
        return {
            "cross_entropy": errors.mean(),
            "rdm": weights[0] * matching,
            "variance": weights[1] * variance,
        }
