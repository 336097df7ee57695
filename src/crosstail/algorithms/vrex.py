from torch import Tensor

from crosstail.algorithms._annealed import DRAWN, SHARE, Annealed
from crosstail.algorithms._base import DomainBatch, LogUniform, hp
from crosstail.losses.domains import vrex_penalty


class VREx(Annealed):
    """VREx: mean of the domains' risks + λ · their variance (Krueger et al., 2021)."""

    family = "invariance"
    min_domains = 2
    differs = (
        "the variance has weight 1 during annealing, and Adam is reset when the weight changes, as in DomainBed",
        SHARE,
        DRAWN,
    )

    class Hparams(Annealed.Hparams):
        penalty: float = hp(10.0, LogUniform(1e-1, 1e5), "λ, weight of the variance after annealing")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        errors = batch.by_domain(self.likelihood(self.head(z), batch.y, reduction="none"))  # (K, n)
        weight = self.hparams.penalty if self.annealed else 1.0
        return {"cross_entropy": errors.mean(1).mean(), "vrex": weight * vrex_penalty(errors)}
