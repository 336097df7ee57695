import torch
from torch import Tensor

from crosstail.algorithms._base import ERM, Choice, DomainBatch, hp
from crosstail.losses.host import in_full_precision


class CAD(ERM):
    """CAD: a sample's nearest samples should be from other domains, so features hide the domain (Ruan et al., 2022).

    −log p, where p is the probability of other domains under a softmax of z · z′ / τ over the other samples.
    """

    family = "invariance"
    adds_term = True
    min_domains = 2
    differs: tuple[str, ...] = (
        "−log of the other domains' probability is minimised, where the paper minimises log of the own domain's; "
        "features are not normalised, and the loss is multiplied by τ / 0.07, as in DomainBed",
        "samples whose class occurs only once in the batch are left out, as in DomainBed",
    )

    class Hparams(ERM.Hparams):
        bottleneck: float = hp(0.1, Choice(1e-4, 1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2), "λ, weight of the bottleneck")
        temperature: float = hp(0.1, Choice(0.05, 0.1), "τ, temperature of the softmax", above=0)

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        others = ~torch.eye(len(batch), dtype=torch.bool, device=z.device)
        alike = others & (batch.y[:, None] == batch.y)
        away = batch.domain[:, None] != batch.domain
        bottleneck = self.hparams.temperature / 0.07 * self.bottleneck(z, others, alike, away)
        return super().losses(z, batch) | {"bottleneck": self.hparams.bottleneck * bottleneck}

    def bottleneck(self, z: Tensor, others: Tensor, alike: Tensor, away: Tensor) -> Tensor:
        """The mean over samples of −log p; the masks (B, B): other samples, same class, other domain."""
        return self.contrast(z, others, others & away, alike.any(1))

    def contrast(self, z: Tensor, among: Tensor, positive: Tensor, rows: Tensor) -> Tensor:
        """Mean over rows (B,) of −log of the positives' probability in a softmax over `among`."""
        with in_full_precision(z):
            similarity = (z @ z.mT / self.hparams.temperature)[rows]
            terms = [similarity.masked_fill(~mask[rows], -torch.inf).logsumexp(1) for mask in (among, positive)]
            return (terms[0] - terms[1]).sum() / rows.sum().clamp_min(1)
