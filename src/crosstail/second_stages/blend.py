"""Blend: pooled means and balanced softmax, weighted by their predictions for held-out samples (Wolpert, 1992)."""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.pairs import pair_number
from crosstail.second_stages._pooling import NEVER, Pooling, log_loss, minimise
from crosstail.second_stages._stage import Features, FittedStage
from crosstail.second_stages.pooled import PooledHead, fit_pooled

PENALTIES = (0.1, 0.03, 0.01)  # of the squared weights; strongest first
MOST_CLASSES = 1_000  # with more, the classifier by balanced softmax would take hours: pooled means alone
CURVATURE = 0.02  # of the loss in a score, about; it only decides how long the search takes


class BlendHead(PooledHead):
    """log p = a log p_pooled + b log p_softmax, up to a constant; the second is linear in the projected features."""

    softmax_weight: Tensor  # (C, R)
    softmax_bias: Tensor  # (C,)
    shares: Tensor  # a, b

    def __init__(self, num_features: int, num_domains: int, num_classes: int) -> None:
        super().__init__(num_features, num_domains, num_classes)
        self.register_buffer("softmax_weight", torch.zeros(num_classes, self.basis.shape[1]))
        self.register_buffer("softmax_bias", torch.zeros(num_classes))
        self.register_buffer("shares", torch.tensor([1.0, 0.0]))

    def forward(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        z = self.projected(z)
        softmax = F.linear(z, self.softmax_weight, self.softmax_bias).log_softmax(1)
        return self.shares[0] * self.pooled(z, domain) + self.shares[1] * softmax


class BalancedSoftmax:
    """A linear classifier by balanced softmax (Ren et al., 2020), with the counts of each sample's domain.

    Minimises the mean over domains of the mean over their samples of −log softmax(W z + b + log n_d)[y], plus
    ½ penalty |W|², which is convex; z is scaled to unit variance on average. Strong penalties come first, and each
    solution is where the search for the next one starts.
    """

    def __init__(self, pooling: Pooling, without: Tensor | None = None) -> None:
        rows = slice(None) if without is None else ~without
        shape, y, domain = pooling.shape, pooling.y[rows], pooling.domain[rows]
        counts = torch.bincount(pair_number(y, domain, shape[1]), minlength=shape[0] * shape[1]).view(shape)
        self.scale = float(pooling.z.std().clamp(min=1e-12))
        self.z, self.y = (pooling.z[rows] / self.scale).float(), y
        self.offset = counts[domain].float().log()
        sizes = counts.sum(1)
        self.share = (1 / sizes[domain] / (sizes > 0).sum()).float()
        self.variance = self.share @ self.z**2
        self.weight = torch.zeros(shape[1], self.z.shape[1])
        self.bias = torch.where(counts.sum(0) > 0, 0.0, NEVER)

    def solve(self, penalty: float) -> None:
        """Find the classifier for a penalty, in units in which the curvature is about 1 in every direction."""
        of_weight, of_bias = (CURVATURE * self.variance + penalty).rsqrt(), CURVATURE**-0.5
        weight, bias = (self.weight / of_weight).requires_grad_(), (self.bias / of_bias).requires_grad_()

        def terms() -> Iterator[Tensor]:
            scores = F.linear(self.z, of_weight * weight, of_bias * bias) + self.offset
            yield self.share @ F.cross_entropy(scores, self.y, reduction="none")
            yield 0.5 * penalty * ((of_weight * weight) ** 2).sum()

        minimise(terms, [weight, bias], max_iter=40, history_size=10, tolerance_grad=1e-3)
        self.weight, self.bias = of_weight * weight.detach(), of_bias * bias.detach()

    def log_probabilities(self, z: Tensor) -> Tensor:
        """Log probabilities (N, C) of projected features (N, R), in float64."""
        return F.linear((z / self.scale).float(), self.weight, self.bias).double().log_softmax(1)


def blend_shares(pooled: Tensor, softmax: Tensor, y: Tensor, weights: Tensor) -> Tensor:
    """a and b ≥ 0 with the smallest log loss of a · pooled + b · softmax, a convex function of both."""
    free = torch.full((2,), 0.5, dtype=torch.float64, requires_grad=True)
    kept = torch.ones(2, dtype=torch.bool)

    def terms() -> Iterator[Tensor]:
        a, b = free * kept
        yield log_loss(a * pooled + b * softmax, y, weights) / weights.sum()

    def best() -> Tensor:
        minimise(terms, [free], max_iter=100, tolerance_grad=1e-7, tolerance_change=1e-12)
        return free.detach() * kept

    found = best()
    while bool((found < 0).any()):
        kept &= found > found.min()  # by convexity, the constrained minimum has this share at 0
        found = best()
    return found


def empty_head(num_features: int, num_domains: int, num_classes: int) -> PooledHead:
    """The head that `fit` fills in."""
    kind = PooledHead if num_classes > MOST_CLASSES else BlendHead
    return kind(num_features, num_domains, num_classes)


def fit(features: Features) -> PooledHead:
    """Fit both, and blend them by their predictions for held-out samples; pooled means alone with very many classes."""
    head = empty_head(*features.sizes)
    pooling, given, judged = fit_pooled(features, head)
    if not isinstance(head, BlendHead):
        return head
    final = BalancedSoftmax(pooling)
    penalty = PENALTIES[0]
    if judged:
        y, weights = torch.cat([held.y for held in judged]), torch.cat([held.weights for held in judged])
        parts = [BalancedSoftmax(pooling, held.held) for held in judged]
        least, softmax = math.inf, Tensor()
        for strength in PENALTIES:
            for part in parts:
                part.solve(strength)
            each = [part.log_probabilities(pooling.z[held.rows]) for part, held in zip(parts, judged, strict=True)]
            loss = float(log_loss(torch.cat(each), y, weights))
            if loss >= least:
                break
            least, penalty, softmax = loss, strength, torch.cat(each)
        pooled = torch.cat([held.scores(given, pooling.shape).logsumexp(1) for held in judged]).log_softmax(1)
        head.shares.copy_(blend_shares(pooled, softmax, y, weights))
    final.solve(penalty)
    head.softmax_weight.copy_(final.weight / final.scale)
    head.softmax_bias.copy_(final.bias)
    return head


STAGE = FittedStage(fit=fit, head=empty_head)
