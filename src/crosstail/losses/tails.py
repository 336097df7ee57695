"""Cross-entropies for long tails, by the training counts (D, C) of every (domain, class) pair.

Everywhere scores (B, C) · y (B,) · domain (B,); with a single domain, `domain` is 0 and `counts` has one row.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.losses.host import occurrences


def balanced_softmax_loss(scores: Tensor, y: Tensor, domain: Tensor, counts: Tensor) -> Tensor:
    """Cross-entropy of s + log n (Ren et al., 2020): classes that are absent from a domain drop out of its softmax."""
    return F.cross_entropy(scores + counts.log()[domain], y)


def logit_adjusted_loss(scores: Tensor, y: Tensor, domain: Tensor, counts: Tensor, *, tau: float = 1.0) -> Tensor:
    """Cross-entropy of s + τ log n (Menon et al., 2021)."""
    return F.cross_entropy(scores + torch.xlogy(tau, counts)[domain], y)


def vs_loss(
    scores: Tensor, y: Tensor, domain: Tensor, counts: Tensor, *, tau: float = 1.25, gamma: float = 0.15
) -> Tensor:
    """Cross-entropy of Δ s + τ log n, with Δ = (n / n_max)^γ (Kini et al., 2021)."""
    scales = (counts / counts.amax(1, keepdim=True).clamp(min=1)) ** gamma
    return logit_adjusted_loss(scales[domain] * scores, y, domain, counts, tau=tau)


def seesaw_loss(
    scores: Tensor, y: Tensor, domain: Tensor, counts: Tensor, *, mitigation: float = 0.8, compensation: float = 2.0
) -> Tensor:
    """Cross-entropy in which class k has the factor min(1, n_k / n_y)^p · max(1, p_k / p_y)^q (Wang et al., 2021)."""
    prior, chance, label = counts.log()[domain], F.log_softmax(scores.detach(), 1), y[:, None]
    rarer = (prior - prior.gather(1, label)).clamp(max=0).exp()
    spared = torch.xlogy(mitigation, rarer)  # p log of it, and 0 log 0 = 0
    mistaken = compensation * (chance - chance.gather(1, label)).clamp(min=0)
    return F.cross_entropy(scores + spared + mistaken, y)


def ldam_loss(
    scores: Tensor,
    y: Tensor,
    domain: Tensor,
    counts: Tensor,
    *,
    max_m: float = 0.5,
    scale: float = 30.0,
    weights: Tensor | None = None,
) -> Tensor:
    """Cross-entropy with margins ∝ n^(−1/4) on the label's cosine, of which scores are multiples (Cao et al., 2019)."""
    margin = F.one_hot(y, scores.shape[1]) * ldam_margins(counts, max_m)[domain, y, None]
    return weighted_loss(scores - scale * margin, y, domain, weights)


def ldam_margins(counts: Tensor, max_m: float = 0.5) -> Tensor:
    """Margins (D, C), of which the largest is `max_m`; 0 where there are no samples."""
    margins = (counts.clamp(min=1) ** -0.25).where(counts > 0, 0)
    return margins * (max_m / margins.max())


def gcl_loss(
    scores: Tensor, y: Tensor, domain: Tensor, counts: Tensor, *, noise: float = 0.5, scale: float = 30.0
) -> Tensor:
    """Cross-entropy of cosines · `scale`, which noise lowers: the rarer the class, the more (Li et al., 2022).

    cos_k − σ |ε_k| (log n_max − log n_k) / (log n_max − log n_min), with ε_k ~ N(0, 1/3²) cut off at ±1.
    """
    log = counts.clamp(min=1).log()
    rarity = log.amax(1, keepdim=True) - log  # 0 for the most frequent class, 1 for the rarest
    rarity = rarity / rarity.amax(1, keepdim=True).clamp_min(1e-12)
    cloud = (torch.randn(scores.shape).to(scores) / 3).clamp(-1, 1).abs() * rarity[domain]
    return F.cross_entropy(scores - scale * noise * cloud, y)


def focal_loss(scores: Tensor, y: Tensor, *, gamma: float = 1.0) -> Tensor:
    """Mean of −(1 − p)^γ log p, with the label's probability p (Lin et al., 2017)."""
    each = F.cross_entropy(scores, y, reduction="none")
    # For γ < 1 the slope at 1 − p = 0 is infinite, and infinity times a cross-entropy of 0 is NaN.
    missing = (-torch.expm1(-each)).clamp(min=torch.finfo(each.dtype).tiny)
    return (missing**gamma * each).mean()


def label_aware_smoothing_loss(
    scores: Tensor, y: Tensor, domain: Tensor, counts: Tensor, *, frequent: float = 0.3, rare: float = 0.0
) -> Tensor:
    """Cross-entropy with labels that are smoothed the more, the more frequent the class (Zhong et al., 2021).

    The label has the target 1 − ε, the other classes share ε; with n between the rarest n_K and the most frequent n_1,
    ε = ε_K + (ε_1 − ε_K) sin(π (n − n_K) / (2 (n_1 − n_K))).
    """
    n = counts.double()
    largest, smallest = n.amax(1, keepdim=True), n.where(n > 0, math.inf).amin(1, keepdim=True)
    place = ((n - smallest) / (largest - smallest)).nan_to_num(1.0).clamp(0, 1)  # equal counts: all frequent
    smoothing = (rare + (frequent - rare) * (place * math.pi / 2).sin()).float()[domain, y]
    errors = -F.log_softmax(scores.to(torch.promote_types(scores.dtype, torch.float32)), 1)  # (B, C)
    own = errors.gather(1, y[:, None])[:, 0]
    others = (errors.sum(1) - own) / max(errors.shape[1] - 1, 1)
    return torch.lerp(own, others, smoothing.to(errors)).mean()


def weighted_loss(scores: Tensor, y: Tensor, domain: Tensor, weights: Tensor | None) -> Tensor:
    """Cross-entropy with weights (D, C) of pairs, divided by the number of samples, not by the sum of the weights."""
    each = F.cross_entropy(scores, y, reduction="none")
    return (each if weights is None else weights[domain, y] * each).mean()


def hard_sample_loss(scores: Tensor, y: Tensor, domain: Tensor, weights: Tensor) -> Tensor:
    """Mean over classes of Σ_i w a_i CE_i, with a softmax a of the class's errors and weights w (Cao et al., 2026)."""
    each = F.cross_entropy(scores, y, reduction="none")
    alike = y[:, None] == y
    hard = each.detach() - each.detach().expand(len(each), -1).masked_fill(~alike, -torch.inf).logsumexp(1)
    return (hard.exp() * weights[domain, y] * each).sum() / (occurrences(y, scores.shape[1]) > 0).sum()


def generalised_cross_entropy(scores: Tensor, y: Tensor, *, q: float = 0.7) -> Tensor:
    """Mean of (1 − p^q) / q, with the label's probability p: it prefers easy samples (Zhang and Sabuncu, 2018)."""
    return -((-q * F.cross_entropy(scores, y, reduction="none")).expm1() / q).mean()


def inverse_weights(counts: Tensor, *, power: float = 1.0) -> Tensor:
    """Weights (D, C) ∝ n^−power that average 1 over a domain's samples (Huang et al., 2016)."""
    return averaging_one(counts.clamp(min=1) ** -power, counts)


def class_balanced_weights(counts: Tensor, *, beta: float = 0.9999) -> Tensor:
    """Weights (D, C) ∝ (1 − β) / (1 − β^n) that sum to the number of a domain's classes (Cui et al., 2019)."""
    weights = over_effective_number(counts, beta)
    return F.normalize(weights, p=1, dim=1) * (counts > 0).sum(1, keepdim=True)


def over_effective_number(counts: Tensor, beta: float) -> Tensor:
    """(1 − β) / (1 − β^n), and 0 where there are no samples (D, C)."""
    weights = (1 - beta) / -torch.expm1(counts.clamp(min=1) * math.log(beta))
    return weights.where(counts > 0, 0)


def averaging_one(weights: Tensor, counts: Tensor) -> Tensor:
    """Scale weights (D, C) to average 1 over a domain's samples, so that the loss has the scale of the plain one."""
    samples, weight = counts.sum(1, keepdim=True), (counts * weights).sum(1, keepdim=True)
    return weights * samples / weight.where(samples > 0, 1)
