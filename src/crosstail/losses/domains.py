"""Terms that compare K domains with n samples each: features (K, n, F), scores (K, n, C), classes and errors (K, n).

`by_domain` sorts a batch into this form.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.losses.distances import pair_distances
from crosstail.losses.host import in_full_precision

RATES = (0.001, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)


def by_domain(values: Tensor, domain: Tensor) -> Tensor:
    """Values (B, …) of a batch that has as many samples of each of K domains, by domain: (K, B / K, …)."""
    numbers = torch.unique(domain, return_counts=True)[1].tolist()
    if len({*numbers}) > 1:
        raise ValueError(f"the domains have {numbers} samples in this batch, expected the same number of each")
    return values[domain.argsort(stable=True)].reshape(len(numbers), -1, *values.shape[1:])


def coral_penalty(z: Tensor) -> Tensor:
    """Squared differences of means and covariances between domains (Sun and Saenko, 2016)."""
    mean, covariance = moments(z)
    return squared_difference(mean) + squared_difference(covariance)


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


def mmd_penalty(z: Tensor) -> Tensor:
    """MMD² of features, averaged over all pairs of domains, with a sum of Gaussian kernels (Li et al., 2018).

    With M (K, K) the mean kernel between the samples of two domains, MMD²_ij = M_ii + M_jj − 2 M_ij.
    """
    k, n, _ = z.shape
    mean = kernel(z.flatten(0, 1), z.flatten(0, 1)).view(k, n, k, n).mean((1, 3))
    return 2 * (k * mean.trace() - mean.sum()) / (k * (k - 1))


def two_sample_discrepancy(z: Tensor, first: Tensor, second: Tensor, rates: tuple[float, ...] = RATES) -> Tensor:
    """MMD² of two samples, given as row numbers of points (B, F)."""
    between = kernel(z, z, rates)
    return between[first][:, first].mean() + between[second][:, second].mean() - 2 * between[first][:, second].mean()


def kernel(a: Tensor, b: Tensor, rates: tuple[float, ...] = RATES) -> Tensor:
    """Σ_r exp(−r ‖a_i − b_j‖²), (n, m)."""
    squared = pair_distances(a, b, validate=False).square()
    return (-torch.tensor(rates, device=a.device)[:, None, None] * squared).exp().sum(0).to(squared)


def irm_penalty(gradients: Tensor) -> Tensor:
    """Mean over domains of the squared mean of the samples' `scale_gradients` (K, n) (Arjovsky et al., 2019)."""
    return squared_mean(gradients).mean()


def scale_gradients(scores: Tensor, y: Tensor) -> Tensor:
    """Gradient (B,) of each sample's cross-entropy of w · scores in w at w = 1: Σ_c p_c s_c − s_y."""
    return (scores.softmax(1) * scores).sum(1) - scores.gather(1, y[:, None])[:, 0]


def squared_mean(values: Tensor) -> Tensor:
    """Unbiased estimate (K,) of the squared expectation of each row (K, n): the product of the means of two halves.

    It is 0 for n = 1, where one half is empty.
    """
    return values[:, ::2].mean(1) * values[:, 1::2].sum(1) / max(values.shape[1] // 2, 1)


def vrex_penalty(errors: Tensor) -> Tensor:
    """The variance of the domains' risks (Krueger et al., 2021)."""
    return errors.mean(1).var(correction=0)


def fishr_penalty(z: Tensor, scores: Tensor, y: Tensor) -> Tensor:
    """Mean squared difference between a domain's `gradient_variance` and the mean of all (Rame et al., 2022)."""
    return gradient_variance(z, scores, y).var(0, correction=0).mean()


def gradient_variance(z: Tensor, scores: Tensor, y: Tensor) -> Tensor:
    """Variance over n samples of the gradients of a linear classifier's weights and biases: (K, C, F + 1).

    The gradient of a sample's cross-entropy is (p − one-hot y) (z, 1)ᵀ.
    """
    with in_full_precision(z):
        kind = torch.promote_types(z.dtype, torch.float32)
        error, z = (scores.softmax(-1) - F.one_hot(y, scores.shape[-1])).to(kind), F.pad(z.to(kind), (0, 1), value=1.0)
        return (error.square().mT @ z.square() - (error.mT @ z).square() / z.shape[1]) / z.shape[1]


def rdm_penalties(errors: Tensor, domains: int) -> tuple[Tensor, Tensor]:
    """MMD² of the worst of K domains' errors and all errors (K · n,), and the sum of their variances.

    The errors are sorted by domain (Nguyen et al., 2024).
    """
    every = torch.arange(len(errors), device=errors.device).view(domains, -1)
    worst = every.index_select(0, errors.detach().view(domains, -1).mean(1).argmax()[None])[0]
    matching = two_sample_discrepancy(errors[:, None], worst, every.flatten(), (0.0001, *RATES))
    return matching, errors[worst].var(correction=0) + errors.var(correction=0)


def bottleneck_penalty(z: Tensor) -> Tensor:
    """Mean variance of the features within a domain (Ahuja et al., 2021)."""
    return z.var(1, correction=min(1, z.shape[1] - 1)).mean()


def risk_quantile(risks: Tensor, *, alpha: float = 0.75) -> Tensor:
    """The α-quantile of a kernel density estimate of the domains' risks (K,) (Eastwood et al., 2022).

    F(q) = mean_d Φ((q − R_d) / h) = α, with bandwidth h = 1.06 σ K^(−1/5) (Silverman, 1986).
    """
    bandwidth = 1.06 * (risks.var() + 1e-12).sqrt() * len(risks) ** -0.2

    def distribution(q: Tensor) -> Tensor:
        return torch.special.ndtr((q[:, None] - risks) / bandwidth).mean(1)

    with torch.no_grad():
        shift = bandwidth * torch.special.ndtri(torch.tensor(alpha, dtype=risks.dtype))
        low, high = risks.amin() + shift, risks.amax() + shift  # it lies between the quantiles of single risks
        for _ in range(5):  # every pass narrows it by a factor of 1,000
            grid = low + (high - low) * torch.linspace(0, 1, 1001).to(risks)
            place = (distribution(grid) < alpha).sum().clamp(1, 1000)
            low, high = grid.gather(0, torch.stack([place - 1, place]))
        q = low[None]
        density = torch.exp(-(((q - risks) / bandwidth) ** 2) / 2).mean() / (bandwidth * (2 * torch.pi) ** 0.5)
    return (q - (distribution(q) - alpha) / density)[0]  # a Newton step, whose gradient is the quantile's


def cvar_loss(errors: Tensor, *, alpha: float = 0.1) -> Tensor:
    """Mean of the worst share α of the errors (B,), the conditional value at risk (Levy et al., 2020)."""
    worst = errors.sort(descending=True).values
    size = alpha * len(worst)  # the last of the worst samples counts in part
    weights = (size - torch.arange(len(worst), device=errors.device)).clamp(0, 1) / min(size, len(worst))
    return weights.to(worst) @ worst
