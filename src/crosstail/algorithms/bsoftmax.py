from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch
from crosstail.losses.tails import balanced_softmax_loss


class BSoftmax(ERM):
    """BSoftmax: cross-entropy of the scores + log n in training, of the scores alone in prediction (Ren et al., 2020).

    A class that is absent from a domain has log 0 = −∞ there: it drops out of the softmax, and the domain's samples
    do not affect it.
    """

    family = "imbalance"
    differs: tuple[str, ...] = (
        "n is the count of each class in the sample's domain",
        "a class that is absent from a domain has n = 0, as in the formula; in the BoDA code it has n = 1",
    )

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        return {"cross_entropy": balanced_softmax_loss(self.head(z), batch.y, batch.domain, self.counts)}
