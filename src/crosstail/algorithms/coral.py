from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp


class CORAL(ERM):
    """CORAL: match the mean and covariance of features between domains (Sun and Saenko, 2016)."""

    family = "invariance"
    adds_term = True
    min_domains = 2
    differs = ("means are matched too, and over all pairs of domains, as in DomainBed",)

    class Hparams(ERM.Hparams):
        gamma: float = hp(1.0, LogUniform(1e-1, 1e1), "weight of the penalty")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        mean, covariance = moments(batch.by_domain(z))
        penalty = squared_difference(mean) + squared_difference(covariance)
        return super().losses(z, batch) | {"coral": self.hparams.gamma * penalty}


def moments(z: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (K, F) and covariance (K, F, F) of every domain's features (K, n, F)."""
    mean = z.mean(1)
    centred = z - mean[:, None]
    return mean, centred.mT @ centred / max(z.shape[1] - 1, 1)


def squared_difference(values: Tensor) -> Tensor:
    """Squared difference of values (K, …) between two domains, averaged over entries and pairs of domains.

    Σ_{i<j} (a_i − a_j)² = K Σ_i (a_i − ā)², so K terms replace K (K − 1) / 2 pairs.
    """
    return 2 / (len(values) - 1) * (values - values.mean(0)).square().flatten(1).mean(1).sum()
