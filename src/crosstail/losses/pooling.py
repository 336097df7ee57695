"""Partial pooling: the mean of every pair, also of those without samples, borrows from its class and its domain."""

import torch
from torch import Tensor

from crosstail.losses.statistics import require, require_tensors

Variance = float | Tensor


def pooled_means(
    mean: Tensor,
    counts: Tensor,
    *,
    domain: Variance = 1.0,
    label: Variance = 1.0,
    pair: Variance = 0.125,
) -> tuple[Tensor, Tensor]:
    """Posterior means (D, C, F) of all pairs from sample means (D, C, F) and counts (D, C), and their variances (D, C).

    A pair's mean is the sum of what all pairs share and what its domain, its class and the pair itself contribute:

        μ_{d,c} = m + a_d + b_c + i_{d,c},  a ~ N(0, σ_a²), b ~ N(0, σ_b²), i ~ N(0, τ²), m flat;
        sample mean M_{d,c} ~ N(μ_{d,c}, 1/n_{d,c}).

    `domain`, `label` and `pair` are σ_a², σ_b² and τ², in units of the variance within a pair, the same for every
    feature. Given m, a and b, a pair keeps the share k = τ² / (τ² + 1/n) of its own mean, none without samples:

        μ̂ = (1 − k) (m̂ + â_d + b̂_c) + k M,  variance (1 − k)² Var(m + a_d + b_c) + (1 − k) τ².

    Without any sample, everything is NaN.

    The normal equations of m, a and b have 1 + D + C unknowns, of which the classes (or the domains, if there are more
    of them) are eliminated: nothing of size pairs × pairs exists.

    >>> mean, counts = torch.tensor([[[0.0], [4.0]], [[1.0], [0.0]]]), torch.tensor([[500, 500], [500, 0]])
    >>> pooled, variance = pooled_means(mean, counts, pair=0.01, domain=100.0, label=100.0)
    >>> round(pooled[1, 1].item(), 1), bool(variance[1, 1] > variance[1, 0])
    (5.0, True)
    """
    require_tensors(mean=mean, counts=counts)
    require("mean", mean, mean.ndim == 3 and mean.is_floating_point(), "floats (D, C, F)")
    shape = tuple(mean.shape[:2])
    require("counts", counts, counts.shape == shape and not counts.is_complex(), f"numbers {shape}, as for mean")
    if len(counts) > counts.shape[1]:
        swapped, v = pooled_means(mean.transpose(0, 1), counts.T, domain=label, label=domain, pair=pair)
        return swapped.transpose(0, 1), v.T
    n, ones = counts.to(mean.dtype), mean.new_ones(len(counts), 1)
    mean = torch.where(n[..., None] > 0, mean, 0.0)  # the mean of no samples may be anything, such as NaN
    origin = mean.detach().sum((0, 1)) / (n > 0).sum()
    around = mean - origin  # moves the answer by as much, and sums of small numbers keep their digits
    w = torch.where(n > 0, 1 / (pair + 1 / n.clamp(min=1)), 0.0)  # precision of M as an observation of m + a + b
    shared = torch.cat([ones, torch.eye(len(n), dtype=mean.dtype, device=mean.device)], 1)  # (D, 1 + D): m, a
    of_class = w.sum(0) + 1 / label
    share = (w.T @ shared) / of_class[:, None]  # (C, 1 + D): how b̂ answers to m and a
    prior = torch.cat([torch.zeros_like(n[0, :1]), ones[:, 0] / domain])
    left = shared.T @ (w.sum(1)[:, None] * shared) + torch.diag(prior) - share.T @ (of_class[:, None] * share)
    class_sum = torch.einsum("dc,dcf->cf", w, around)
    covariance = torch.linalg.inv_ex(left).inverse  # `inv` would wait for the device
    m_a = covariance @ (shared.T @ torch.einsum("dc,dcf->df", w, around) - share.T @ class_sum)
    b = class_sum / of_class[:, None] - share @ m_a
    additive = (origin + shared @ m_a)[:, None] + b
    pooled = torch.lerp(additive, mean, (pair * w)[..., None])
    # b̂ = class_sum / of_class − share (m, a), so m + a_d + b_c depends on (shared_d − share_c) (m, a).
    of_m_a, of_b = shared @ covariance, share @ covariance
    uncertain = (of_m_a * shared).sum(1)[:, None] - 2 * of_m_a @ share.T + (of_b * share).sum(1) + 1 / of_class
    lent = torch.where(n > 0, w / n.clamp(min=1), 1.0)  # 1 − k, which would lose digits for large counts
    return pooled, lent**2 * uncertain + lent * pair
