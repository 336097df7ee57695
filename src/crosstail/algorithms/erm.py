from torch import Tensor

from crosstail.algorithms._algorithm import Algorithm
from crosstail.data import DomainBatch


class ERM(Algorithm):
    """ERM: mean cross-entropy over the samples of all domains (Vapnik, 1999)."""

    family = "vanilla"

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        return {"cross_entropy": self.likelihood(self.head(z), batch.y)}
