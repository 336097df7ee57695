"""Correlation alignment of the domains' features."""

from dataclasses import dataclass

from torch import Tensor

from crosstail.algorithms._hparams import LogUniform, hp
from crosstail.algorithms.erm import ERM
from crosstail.data import DomainBatch


class CORAL(ERM):
    """CORAL: match the mean and covariance of the features of every two domains (Sun and Saenko, 2016)."""

    family = "invariance"
    min_domains = 2
    differs = ("the means are matched too, and over every two domains, as DomainBed does",)

    @dataclass(frozen=True, kw_only=True)
    class Hparams(ERM.Hparams):
        """The weight of the penalty."""

        gamma: float = hp(1.0, LogUniform(1e-1, 1e1), "weight of the penalty")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        """Cross-entropy, and how far the domains' first two moments are apart."""
        mean, covariance = moments(batch.by_domain(z))
        penalty = squared_difference(mean) + squared_difference(covariance)
        return super().losses(z, batch) | {"coral": self.hparams.gamma * penalty}


def moments(z: Tensor) -> tuple[Tensor, Tensor]:
    """Mean (K, F) and covariance (K, F, F) of every domain's features (K, n, F)."""
    mean = z.mean(1)
    centred = z - mean[:, None]
    return mean, centred.mT @ centred / max(z.shape[1] - 1, 1)


def squared_difference(values: Tensor) -> Tensor:
    """Mean over the entries and over every two of K domains of the squared difference of (K, …).

    Σ_{i<j} (a_i − a_j)² = K Σ_i (a_i − ā)², so that K terms do for K (K − 1) / 2 pairs.
    """
    return 2 / (len(values) - 1) * (values - values.mean(0)).square().flatten(1).mean(1).sum()
