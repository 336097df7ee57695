import torch
from torch import Tensor

from crosstail.algorithms._base import ERM, DomainBatch, LogUniform, hp
from crosstail.losses import pair_distances

RATES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


class MMD(ERM):
    """MMD: minimise the maximum mean discrepancy of features between domains (Li et al., 2018)."""

    family = "invariance"
    adds_term = True
    min_domains = 2
    differs = ("no autoencoder and no adversary; the kernel is a sum of seven Gaussians, as in DomainBed",)

    class Hparams(ERM.Hparams):
        gamma: float = hp(1.0, LogUniform(1e-1, 1e1), "weight of the penalty")

    def losses(self, z: Tensor, batch: DomainBatch) -> dict[str, Tensor]:
        return super().losses(z, batch) | {"mmd": self.hparams.gamma * discrepancy(batch.by_domain(z))}


def discrepancy(z: Tensor) -> Tensor:
    """MMD² of features (K, n, F), averaged over all pairs of K domains.

    With M (K, K) the mean kernel between the samples of two domains, MMD²_ij = M_ii + M_jj − 2 M_ij.
    """
    k, n, _ = z.shape
    mean = kernel(z.flatten(0, 1), z.flatten(0, 1)).view(k, n, k, n).mean((1, 3))
    return 2 * (k * mean.trace() - mean.sum()) / (k * (k - 1))


def two_sample_discrepancy(z: Tensor, first: Tensor, second: Tensor, rates: tuple[float, ...] = RATES) -> Tensor:
    """MMD² of two samples, given as masks (B,) of points (B, F)."""
    between = kernel(z, z, rates)
    return between[first][:, first].mean() + between[second][:, second].mean() - 2 * between[first][:, second].mean()


def kernel(a: Tensor, b: Tensor, rates: tuple[float, ...] = RATES) -> Tensor:
    """Σ_r exp(−r ‖a_i − b_j‖²), (n, m)."""
    squared = pair_distances(a, b, validate=False).square()
    return (-torch.tensor(rates, device=a.device)[:, None, None] * squared).exp().sum(0).to(squared)
