from torch import Tensor

from crosstail.algorithms._annealed import Annealed
from crosstail.algorithms._base import DomainBatch, LogUniform, hp, when
from crosstail.algorithms._hparams import LogInteger
from crosstail.losses.domains import irm_penalty, scale_gradients


class IRM(Annealed):
    """IRM: features on which one classifier is optimal in every domain simultaneously (Arjovsky et al., 2019).

    The penalty is the mean over domains of the squared gradient of the domain's risk R_d(w · scores) in w at w = 1.
    """

    family = "invariance"
    min_domains = 2
    differs: tuple[str, ...] = (
        "the penalty has weight 1 during annealing, and Adam is reset when the weight changes, as in DomainBed",
    )

    class Hparams(Annealed.Hparams):
        penalty: float = hp(100.0, LogUniform(1e-1, 1e5), "λ, weight of the penalty after annealing")
        anneal: float = when(500.0, LogInteger(1, 1e4), "end of annealing")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        scores = self.head(z)
        weight = self.hparams.penalty if self.annealed else 1.0
        penalty = irm_penalty(batch.by_domain(scale_gradients(scores, batch.y)))
        return {"cross_entropy": self.likelihood(scores, batch.y), "irm": weight * penalty}
