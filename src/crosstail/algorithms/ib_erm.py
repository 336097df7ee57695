from torch import Tensor

from crosstail.algorithms._annealed import DRAWN, SHARE, Annealed
from crosstail.algorithms._base import DomainBatch, LogUniform, hp
from crosstail.losses.domains import bottleneck_penalty


class IBERM(Annealed):
    """IBERM: cross-entropy + λ · mean variance of features within a domain, for low entropy (Ahuja et al., 2021)."""

    family = "regularisation"
    adds_term = True
    differs: tuple[str, ...] = (
        "the penalty takes effect after annealing, and Adam is reset then, as in DomainBed",
        SHARE,
        DRAWN,
    )

    class Hparams(Annealed.Hparams):
        bottleneck: float = hp(100.0, LogUniform(1e-1, 1e5), "λ, weight of the variance after annealing")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        weight = self.hparams.bottleneck if self.annealed else 0.0
        return super().losses(z, batch) | {"bottleneck": weight * bottleneck_penalty(batch.by_domain(z))}
