"""Means and covariances of the features of every (domain, class) pair, from a stream of batches."""

from collections.abc import Callable
from numbers import Real
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor, nn

from crosstail.losses.distances import LowRankPrecision, Precision
from crosstail.losses.host import in_full_precision, on_host, readable, require_finite
from crosstail.pairs import pair_number

Covariance = Literal["none", "diagonal", "low_rank", "full"]


class PairStatistics(nn.Module):
    """Streaming mean (D, C, F) and covariance of each pair's features, mergeable and stable in float32.

    Batches are combined by the pairwise update of Chan, Golub and LeVeque (1983), which works on differences from
    the mean and so is accurate whatever the features' offset. Kahan summation keeps the mean of a long stream from
    stalling.

    With `momentum` m, a number or one per pair (D, C), the past weighs at most as much as m / (1 − m) samples: the
    statistics start as exact means and become moving averages, in which a new sample has weight 1 − m. A pair without
    samples has count 0 and mean 0.

    >>> statistics = PairStatistics(1, 2, 1)
    >>> statistics.update(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), torch.tensor([0, 0, 0]))
    >>> statistics.mean.flatten().tolist(), statistics.counts.tolist()
    ([2.0, 5.0], [[2, 1]])
    """

    mean: Tensor  # (D, C, F)
    rest: Tensor | None  # (D, C, F), rounding error of the mean, unless there is a momentum
    memory: Tensor  # (D, C), the most samples that a pair's past counts as
    counts: Tensor  # (D, C), samples seen
    variance: Tensor  # (D, C, F), unless covariance is "none" or "full"
    factor: Tensor  # (D, C, F, R) if covariance is "low_rank": Σ ≈ UUᵀ + diag(variance − (U²)1)
    full: Tensor  # (D, C, F, F) if covariance is "full"

    def __init__(
        self,
        num_domains: int,
        num_classes: int,
        num_features: int,
        covariance: Covariance = "none",
        *,
        rank: int = 8,
        momentum: float | Tensor | None = None,
    ) -> None:
        super().__init__()
        if covariance not in get_args(Covariance):
            raise ValueError(f"covariance {covariance!r} is not one of {', '.join(get_args(Covariance))}")
        self.covariance = covariance
        self.rank = min(rank, num_features)
        shape = (num_domains, num_classes, num_features)
        self.register_buffer("mean", torch.zeros(shape))
        self.register_buffer("rest", torch.zeros(shape) if momentum is None else None)
        self.register_buffer("counts", torch.zeros(shape[:2], dtype=torch.int64))
        if covariance in ("diagonal", "low_rank"):
            self.register_buffer("variance", torch.zeros(shape))
        if covariance == "low_rank":
            self.register_buffer("factor", torch.zeros(*shape, self.rank))
        if covariance == "full":
            self.register_buffer("full", torch.zeros(*shape, num_features))
        unlimited = torch.finfo(torch.float32).max  # not infinity: an average of two infinities is NaN
        memory = torch.as_tensor(unlimited if momentum is None else momentum, dtype=torch.float32)
        if momentum is not None:
            if not bool(((memory >= 0) & (memory < 1)).all()):
                raise ValueError(f"momentum is {momentum}, expected at least 0 and below 1")
            memory = memory / (1 - memory)
        self.register_buffer("memory", memory.expand(shape[:2]).clone(), persistent=False)

    @torch.no_grad()
    def update(self, z: Tensor, y: Tensor, domain: Tensor, *, validate: bool = True) -> None:
        """Add a batch: z (B, F), y (B,), domain (B,).

        `validate=False` skips the checks of labels and features; covariances "none" and "diagonal" then need no
        device-to-host reads.
        """
        validate = validate and readable()
        y, domain = checked_batch(z, y, domain, self.mean, validate=validate)
        if not len(z):
            return
        z = z.detach().to(self.mean.dtype)
        if validate and not bool(torch.isfinite(z.sum())):
            require_finite(z, "z")
        pair = pair_number(y, domain, self.counts.shape[1])
        past = torch.minimum(self.counts, self.memory).view(-1).to(z.dtype)  # (P,), samples that the past counts as
        if self.covariance in ("none", "diagonal"):
            self._absorb(z, pair, past)
            return
        # The others need a padded (pairs, F, samples) block, so each turn takes a limited number of samples per pair.
        turn = _arrival(pair) // (max(64, z.shape[1]) if self.covariance == "full" else max(16, 2 * self.rank))
        for t in range(int(turn.max()) + 1):
            self._absorb(z[turn == t], pair[turn == t], past)

    def _absorb(self, z: Tensor, pair: Tensor, past: Tensor) -> None:
        pairs, slot, n_new = _touched(pair, reads=self.covariance in ("low_rank", "full"))  # (U,), (B,), (U,)
        # Sums around the batch's mean are small, so a large offset of the features costs no precision.
        origin = z.mean(0)  # (F,)
        around = z - origin  # (B, F)
        batch_mean = torch.zeros(len(pairs), z.shape[1], dtype=z.dtype, device=z.device).index_add_(0, slot, around)
        batch_mean /= n_new.clamp_min(1)[:, None]  # (U, F), around the origin
        share = (n_new / (past[pairs] + n_new).clamp_min(1))[:, None]  # (U, 1), the weight of the batch
        mean = self.mean.view(-1, z.shape[1])
        delta = batch_mean + (origin - mean[pairs])  # (U, F)
        if self.covariance != "none":
            within = (around - batch_mean[slot]) * (share / n_new.clamp_min(1)[:, None])[slot].sqrt()  # (B, F)
            self._absorb_spread(pairs, slot, within, delta, share)
        if self.rest is None:
            mean.index_add_(0, pairs, share * delta)
        else:
            rest, met = self.rest.view(-1, z.shape[1]), (n_new > 0)[:, None]
            old, lost = mean[pairs], rest[pairs]
            step = torch.where(met, lost + share * (delta - lost), 0.0)
            mean.index_add_(0, pairs, step)
            rest.index_add_(0, pairs, torch.where(met, step - ((old + step) - old) - lost, 0.0))
        self.counts.view(-1).index_add_(0, pairs, n_new)
        past.index_add_(0, pairs, n_new.to(past.dtype))

    def _absorb_spread(self, pairs: Tensor, slot: Tensor, within: Tensor, delta: Tensor, share: Tensor) -> None:
        """Σ ← (1 − s) Σ + Σ_j w_j w_jᵀ + s (1 − s) δ δᵀ, with batch weight s and scaled deviations w."""
        between = delta * (share * (1 - share)).sqrt()  # (U, F)
        if self.covariance in ("diagonal", "low_rank"):
            variance = self.variance.view(-1, delta.shape[1])
            fresh = between.square().index_add_(0, slot, within.square())
            variance.index_add_(0, pairs, torch.addcmul(fresh, share, variance[pairs], value=-1))
            if self.covariance == "diagonal":
                return
        arrival = _arrival(slot)
        block = torch.zeros(len(pairs), int(arrival.max()) + 2, delta.shape[1], dtype=delta.dtype, device=delta.device)
        block[slot, arrival] = within
        block[:, -1] = between  # (U, samples + 1, F)
        if self.covariance == "full":
            full = self.full.view(-1, *self.full.shape[2:])
            with in_full_precision(block):
                full.index_add_(0, pairs, block.mT @ block - share[:, :, None] * full[pairs])
        else:
            factor = self.factor.view(-1, *self.factor.shape[2:])
            old = factor[pairs] * (1 - share[:, :, None]).sqrt()
            factor[pairs] = _truncate(torch.cat([old, block.mT], dim=2), self.rank)

    @torch.no_grad()
    def merge(self, other: "PairStatistics") -> "PairStatistics":
        """Add the statistics of another stream, as if this one had seen both; returns self."""
        share = other.counts.to(self.mean.dtype) / (self.counts + other.counts).clamp_min(1)
        self._combine(other, share[:, :, None], spread_of_means=True)
        self.counts += other.counts
        return self

    @torch.no_grad()
    def blend(self, fresh: "PairStatistics", momentum: float) -> "PairStatistics":
        """μ ← m μ + (1 − m) μ_fresh, likewise Σ: the paper's update after a full pass; returns self.

        A pair without samples so far is copied from `fresh`; one without samples in `fresh` is kept.
        """
        share = (fresh.counts > 0).to(self.mean.dtype)
        share[self.counts > 0] *= 1 - momentum
        self._combine(fresh, share[:, :, None], spread_of_means=False)
        self.counts = torch.where(fresh.counts > 0, fresh.counts, self.counts)
        return self

    def _combine(self, other: "PairStatistics", share: Tensor, *, spread_of_means: bool) -> None:
        """A weighted mean of two statistics, (1 − s) · self + s · other, with s (D, C, 1)."""
        if (other.covariance, other.mean.shape) != (self.covariance, self.mean.shape):
            raise ValueError(
                f"cannot combine statistics of {tuple(self.mean.shape)} features and {self.covariance} covariance "
                f"with {tuple(other.mean.shape)} and {other.covariance}"
            )
        delta = other.mean - self.mean
        between = delta * (share * (1 - share)).sqrt() * float(spread_of_means)
        if self.covariance in ("diagonal", "low_rank"):
            self.variance = self.variance * (1 - share) + other.variance * share + between.square()
        if self.covariance == "low_rank":
            parts = [self.factor * (1 - share[..., None]).sqrt(), other.factor * share[..., None].sqrt()]
            stacked = torch.cat([*parts, between[..., None]], dim=3)
            self.factor = _truncate(stacked.flatten(0, 1), self.rank).view_as(self.factor)
        if self.covariance == "full":
            outer = between[..., :, None] * between[..., None, :]
            self.full = self.full * (1 - share[..., None]) + other.full * share[..., None] + outer
        self.mean = self.mean + share * delta
        self.rest = None if self.rest is None else self.rest * (1 - share)

    @torch.no_grad()
    def precision(self, shrinkage: float = 10.0) -> Precision:
        """Inverse covariances, shrunk towards the mean variance of all pairs with the weight of `shrinkage` samples.

        Σ̂ = (n Σ + k diag(σ̄²)) / (n + k), with n the number of samples seen or, with momentum, remembered; σ̄² is at
        least a thousandth of its mean over the features. "low_rank" and "full" add 0.001 σ̄² to Σ's diagonal, so that
        its inverse exists.
        """
        if self.covariance == "none":
            raise ValueError('these statistics keep no covariance: choose "diagonal", "low_rank" or "full"')
        variance = self.full.diagonal(dim1=-2, dim2=-1) if self.covariance == "full" else self.variance
        n = torch.minimum(self.counts, self.memory + 1).to(variance.dtype)
        own = (n / (n + shrinkage))[..., None]  # (D, C, 1)
        common = (variance * n[..., None]).sum((0, 1)) / n.sum().clamp_min(1)  # (F,)
        # Constant features, or one sample per pair, must not give infinite weights.
        floor = 1e-3 * common.mean()
        common = torch.maximum(common, torch.where(floor > 0, floor, 1.0))
        target = (1 - own) * common
        if self.covariance == "diagonal":
            return (own * variance + target).reciprocal()
        if self.covariance == "full":
            return torch.linalg.inv(own[..., None] * self.full + torch.diag_embed(target + own * 1e-3 * common))
        residual = (variance - self.factor.square().sum(-1)).clamp_min(0) + 1e-3 * common
        diagonal = (own * residual + target).reciprocal()  # (D, C, F)
        factor = self.factor * own[..., None].sqrt()
        # Woodbury: (A⁻¹ + UUᵀ)⁻¹ = A − AU (I + UᵀAU)⁻¹ UᵀA, with (I + UᵀAU) = LLᵀ.
        scaled = diagonal[..., None] * factor
        with in_full_precision(factor):
            inner = torch.eye(self.rank, dtype=factor.dtype, device=factor.device) + factor.mT @ scaled
        lower = torch.linalg.cholesky(inner)
        return LowRankPrecision(diagonal, torch.linalg.solve_triangular(lower.mT, scaled, upper=True, left=False))


def checked_batch(z: Tensor, y: Tensor, domain: Tensor, centroids: Tensor, *, validate: bool) -> tuple[Tensor, Tensor]:
    """Labels and domains (B,) as int64, checked against features (B, F) and a table (D, C, F)."""
    require_tensors(z=z, y=y, domain=domain)
    num_domains, num_classes, num_features = centroids.shape
    require("z", z, z.ndim == 2 and z.shape[1] == num_features and z.is_floating_point(), f"floats (B, {num_features})")
    for name, labels, size in (("domain", domain, num_domains), ("y", y, num_classes)):
        require(name, labels, labels.shape == z.shape[:1] and labels.dtype in _INTEGERS, f"integers ({len(z)},)")
        if validate and len(labels):
            low, high = map(int, labels.aminmax())
            if low < 0 or high >= size:  # it would count for another pair
                raise ValueError(f"{name} has a {low if low < 0 else high}, expected 0 to {size - 1}")
    return y.long(), domain.long()


def require_tensors(**values: object) -> None:
    """Raise an error that names the first argument that is not a tensor, such as a NumPy array."""
    for name, value in values.items():
        if not isinstance(value, Tensor):
            raise ValueError(f"{name} is a {type(value).__name__}, expected a tensor: torch.as_tensor({name})")


def require(name: str, found: Tensor, fits: bool, expected: str) -> None:
    """Raise an error that states the dtype and shape of an argument, unless it fits."""
    if not fits:
        raise ValueError(f"{name} is {found.dtype} of shape {tuple(found.shape)}, expected {expected}")


def require_number(name: str, found: object, fits: Callable[[Any], bool], expected: str) -> None:
    """Raise an error that states an argument, unless it is a number that fits."""
    if not isinstance(found, Real) or not fits(found):
        raise ValueError(f"{name} is {found!r}, expected {expected}")


_INTEGERS = (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64)


def _touched(pair: Tensor, reads: bool) -> tuple[Tensor, Tensor, Tensor]:
    """Pairs (U,) to update, the index among them of each sample's pair (B,), and their samples in the batch (U,).

    Unless `reads` from the device are allowed, U is B, and spare slots stand for pair 0, with no samples.
    """
    if on_host(pair):
        found = np.unique(pair.numpy(), return_inverse=True, return_counts=True)
        pairs, slot, number = map(torch.from_numpy, found)
        return pairs, slot, number
    if reads:
        pairs, slot, number = torch.unique(pair, return_inverse=True, return_counts=True)
        return pairs, slot, number
    ordered, order = pair.sort()
    slots = torch.zeros_like(pair)
    slots[1:] = (ordered[1:] != ordered[:-1]).cumsum(0)
    slot = torch.zeros_like(pair).scatter_(0, order, slots)
    pairs = torch.zeros_like(pair).scatter_(0, slots, ordered)
    return pairs, slot, torch.zeros_like(pair).index_add_(0, slot, torch.ones_like(pair))


def _arrival(pair: Tensor) -> Tensor:
    """For each entry, the number of earlier entries of the same pair."""
    order = pair.argsort(stable=True)
    arrival = torch.empty_like(pair)
    arrival[order] = torch.arange(len(pair), device=pair.device) - torch.searchsorted(pair[order], pair[order])
    return arrival


def _truncate(columns: Tensor, rank: int) -> Tensor:
    """The best rank-R factor of A Aᵀ for each A (P, F, K), through the small Gram matrix (P, K, K)."""
    with in_full_precision(columns):
        _, vectors = torch.linalg.eigh(columns.mT @ columns)
        return columns @ vectors[..., -rank:]
