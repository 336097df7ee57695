"""Partial pooling: pair means that borrow from their class and their domain, rare pairs most (Henderson, 1975)."""

from itertools import islice

import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.second_stages._pooling import Holdout, Parameters, Pooling, log_loss, rank_of, rooted
from crosstail.second_stages._stage import Features, FittedStage, Head

ELSEWHERE = (0.01, 0.03, 0.1, 0.3, 1.0)
NOWHERE = 1e18
AT_ONCE = 4_096  # pairs; their scores for a batch stay in the processor's cache


class PooledHead(Head):
    """Scores of all pairs, linear in the projected features, summed over the domains that a sample may come from.

    score_c = log Σ_d π_d exp(w_{d,c}ᵀ z + b_{d,c}). If the domain is unknown, π is uniform; a known one has 1 − ε, and
    ε is spread over all.
    """

    uses_domain = True
    root: Tensor  # whether features are rooted
    center: Tensor  # (F,)
    basis: Tensor  # (F, R)
    weight: Tensor  # (D, C, R)
    bias: Tensor  # (D, C)
    elsewhere: Tensor  # ε
    chosen: Tensor  # (6,), the Parameters that weights and biases were computed with
    whitening: Tensor  # (R, R), columns of Σ^(−½)
    size: Tensor  # (D, C), |μ̂|²; NOWHERE for a class without samples
    rest: Tensor  # 1 / σ² of the components that are not kept; 0 if all are

    def __init__(self, num_features: int, num_domains: int, num_classes: int) -> None:
        super().__init__()
        rank = rank_of(num_features, num_domains, num_classes)
        self.register_buffer("root", torch.tensor(False))
        self.register_buffer("center", torch.zeros(num_features))
        self.register_buffer("basis", torch.zeros(num_features, rank))
        self.register_buffer("weight", torch.zeros(num_domains, num_classes, rank))
        self.register_buffer("bias", torch.zeros(num_domains, num_classes))
        self.register_buffer("elsewhere", torch.tensor(1.0))
        self.register_buffer("chosen", torch.zeros(len(Parameters._fields)))
        self.register_buffer("whitening", torch.zeros(rank, rank))
        self.register_buffer("size", torch.zeros(num_domains, num_classes))
        self.register_buffer("rest", torch.tensor(0.0))

    def projected(self, z: Tensor) -> Tensor:
        """Centred principal components (B, R) of features (B, F)."""
        return (torch.where(self.root, rooted(z), z) - self.center) @ self.basis

    def pooled(self, z: Tensor, domain: Tensor | None) -> Tensor:
        """Log probabilities (B, C) of projected features."""
        prior = None if domain is None else _log_prior(self.elsewhere, domain, len(self.bias))[..., None]
        classes = max(1, AT_ONCE // len(self.bias))
        parts = []
        for weight, bias in zip(torch.split(self.weight, classes, 1), torch.split(self.bias, classes, 1), strict=True):
            scores = F.linear(z, weight.flatten(0, 1), bias.flatten()).view(-1, *bias.shape)
            parts.append((scores if prior is None else scores + prior).logsumexp(1))
        return torch.cat(parts, 1).log_softmax(1)

    def forward(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        return self.pooled(self.projected(z), domain)

    def distance_to_training(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        """Mahalanobis distance (B,) from the nearest mean of a pair, of its domain where that is known, per feature:

            d² = (min over pairs of |u − μ̂|² + |r|² / σ²) / F,  u = Σ^(−½) z,

        r being what is left of the F features outside the principal components, with mean variance σ² in training. A
        class without training samples has no mean.
        """
        around = torch.where(self.root, rooted(z), z) - self.center
        z = around @ self.basis
        rest = ((around**2).sum(1) - (z**2).sum(1)).clamp(min=0) * self.rest
        along = F.linear(z, self.weight.flatten(0, 1)).view(-1, *self.size.shape) / self.chosen[-1]
        least = (self.size - 2 * along).amin(2)  # weights are T Σ^(−½) μ̂
        nearest = least.amin(1) if domain is None else least.gather(1, domain[:, None])[:, 0]
        square = ((z @ self.whitening) ** 2).sum(1) + nearest + rest
        return (square.clamp(min=0) / around.shape[1]).sqrt()


def _log_prior(elsewhere: Tensor, domain: Tensor, number: int) -> Tensor:
    own = F.one_hot(domain, number).to(elsewhere.dtype)
    return ((1 - elsewhere) * own + elsewhere / number).log()


def holdouts(pooling: Pooling, features: Features) -> tuple[list[Holdout], list[Holdout]]:
    """Held-out samples, or whole domains for a new one, and whole pairs; with very many pairs, one fold of them."""
    most = 1 if pooling.many else None
    if features.unseen:
        return list(islice(pooling.domains(), most)), []
    return list(islice(pooling.folds(), most)), list(islice(pooling.absent(features.seed), most))


def fit_pooled(features: Features, head: PooledHead) -> tuple[Pooling, Parameters, list[Holdout]]:
    """Fill in a head, and return what it was computed from, for a head that builds on it."""
    pooling = Pooling(features)
    judged, absent = holdouts(pooling, features)
    given = pooling.choose([*judged, *absent])
    weight, bias = pooling.whole.linear(given, pooling.shape)
    shrunk, mu, _ = pooling.whole.pooled(given, pooling.shape)
    head.root.fill_(pooling.rooted)
    head.center.copy_(pooling.center)
    head.basis.copy_(pooling.basis)
    head.weight.copy_((weight @ pooling.whole.vectors.T).view_as(head.weight))
    head.bias.copy_(bias.view_as(head.bias))
    head.chosen.copy_(torch.stack(given))
    head.whitening.copy_(pooling.whole.vectors / shrunk.sqrt())
    learnt = pooling.whole.counts.view(pooling.shape).sum(0) > 0
    head.size.copy_((mu**2).sum(1).view(pooling.shape).masked_fill(~learnt, NOWHERE))
    head.rest.fill_(1 / pooling.rest if pooling.rest > 0 else 0.0)
    if not features.unseen:
        head.elsewhere.copy_(_elsewhere(pooling, given, judged))
    return pooling, given, judged


def _elsewhere(pooling: Pooling, given: Parameters, judged: list[Holdout]) -> Tensor:
    """The ε with the smallest log loss on samples that are held out and whose domain is known."""
    losses = torch.zeros(len(ELSEWHERE), dtype=torch.float64)
    for held in judged:
        scores = held.scores(given, pooling.shape)
        for i, elsewhere in enumerate(ELSEWHERE):
            prior = _log_prior(scores.new_tensor(elsewhere), held.domain, pooling.shape[0])
            losses[i] += log_loss((scores + prior[..., None]).logsumexp(1), held.y, held.weights)
    return torch.tensor(ELSEWHERE)[losses.argmin()]


def fit(features: Features) -> PooledHead:
    """Pool the pairs' means, with parameters from cross-validation."""
    head = PooledHead(*features.sizes)
    fit_pooled(features, head)
    return head


STAGE = FittedStage(fit=fit, head=PooledHead)
