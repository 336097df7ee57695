"""Cross-entropy weighted by the count of the sample's pair."""

from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch
from crosstail.losses.tails import weighted_loss


class Weighted(ERM):
    """Mean of w · cross-entropy, with the weight w of the sample's pair; a subclass defines `weigh`."""

    family = "imbalance"
    differs: tuple[str, ...] = (
        "n is the count of the sample's class in its domain",
        "the loss is divided by the number of samples, as in the code of Cui et al. (2019); the BoDA code divides by "
        "the sum of the batch's weights, which reduces the influence of rare classes",
    )
    weights: Tensor  # (D, C)

    def build(self) -> None:
        super().build()
        self.register_buffer("weights", self.weigh(self.counts), persistent=False)

    def weigh(self, counts: Tensor) -> Tensor:
        """Weights (D, C); an absent pair's is never used."""
        raise TypeError(f"{type(self).__name__} must define weigh(counts)")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Weighted cross-entropy, divided by the number of samples, not by the sum of the weights."""
        return {"cross_entropy": weighted_loss(self.head(z), batch.y, batch.domain, self.weights)}
