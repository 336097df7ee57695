from torch import Tensor

from crosstail.algorithms._base import ERM, Choice, DomainBatch, hp
from crosstail.losses.contrastive import cad_loss


class CAD(ERM):
    """CAD: a sample's nearest samples should be from other domains, so features hide the domain (Ruan et al., 2022)."""

    family = "invariance"
    adds_term = True
    min_domains = 2
    conditional = False  # on the class
    differs: tuple[str, ...] = (
        "−log of the other domains' probability is minimised, where the paper minimises log of the own domain's; "
        "features are not normalised, and the loss is multiplied by τ / 0.07, as in DomainBed",
        "samples whose class occurs only once in the batch are left out, as in DomainBed",
    )

    class Hparams(ERM.Hparams):
        bottleneck: float = hp(0.1, Choice(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2), "λ, weight of the bottleneck")
        temperature: float = hp(0.1, Choice(0.05, 0.1), "τ, temperature of the softmax", above=0)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        h = self.hparams
        term = cad_loss(z, batch.y, batch.domain, temperature=h.temperature, conditional=self.conditional)
        return super().losses(z, batch) | {"bottleneck": h.bottleneck * (h.temperature / 0.07 * term)}
