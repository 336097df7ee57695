from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch


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
    log_prior: Tensor  # (D, C)

    def build(self) -> None:
        super().build()
        self.register_buffer("log_prior", self.adjustment(self.task.counts), persistent=False)

    def adjustment(self, counts: Tensor) -> Tensor:
        """Offset (D, C) of the scores, per domain."""
        return counts.log()

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        return {"cross_entropy": self.likelihood(self.head(z) + self.log_prior[batch.domain], batch.y)}
