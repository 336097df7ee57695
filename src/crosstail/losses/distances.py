"""Distances from every sample to every pair's centroid, by matrix products: never a tensor of size B×P×F."""

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint


class LowRankPrecision(NamedTuple):
    """The inverse of (diagonal + low rank) covariances, diag(a) − W Wᵀ for each pair (Woodbury)."""

    diagonal: Tensor  # (..., F)
    factor: Tensor  # (..., F, R)

    def reshape(self, *pairs: int) -> "LowRankPrecision":
        """Change the leading (pair) dimensions."""
        return LowRankPrecision(
            self.diagonal.reshape(*pairs, *self.diagonal.shape[-1:]),
            self.factor.reshape(*pairs, *self.factor.shape[-2:]),
        )


Precision = Tensor | LowRankPrecision
"""Inverse covariances of P pairs: diagonal (P, F), full (P, F, F), or low rank."""


def pair_distances(z: Tensor, centroids: Tensor, precision: Precision | None = None) -> Tensor:
    """Euclidean or, with a precision, Mahalanobis distances; z (B, F), centroids (P, F) → (B, P).

    d(z, μ) = √((z − μ)ᵀ Λ (z − μ)), Λ = I or Σ⁻¹. The gradient at distance 0 is 0, squares that are too large or too
    small for a float do no harm, and distances far below the features' norms are computed again without cancellation.

    >>> pair_distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[5., 0.]])
    """
    with in_full_precision(z):
        return _distances(z, centroids, precision)


def _distances(z: Tensor, centroids: Tensor, precision: Precision | None) -> Tensor:
    wide = torch.float64 if z.dtype == torch.float64 else torch.float32
    z, centroids = z.to(wide), centroids.to(wide)
    squared = _squared(z, centroids, precision)
    limits = torch.finfo(wide)
    if squared.numel() == 0 or limits.tiny / limits.eps < float(squared.detach().amax()) < torch.inf:
        return _root(squared)
    require_finite(z, "z")
    require_finite(centroids, "centroids")
    size = max(_power_of_two(z), _power_of_two(centroids))
    precision, strength = _normalised(precision)
    return _root(_squared(z / size, centroids / size, precision)) * (size * strength**0.5)


def _squared(z: Tensor, centroids: Tensor, precision: Precision | None) -> Tensor:
    """(z − μ)ᵀ Λ (z − μ), z (B, F), centroids (P, F) → (B, P)."""
    squared, size_z, size_c = _expanded(*_centred(z, centroids, precision), precision)
    # Entries that are so small beside their terms that few correct digits are left are computed again.
    with torch.no_grad():
        lossy = 2e3 * torch.finfo(squared.dtype).eps
        if squared.numel() == 0 or not bool(squared.amin() < lossy * (size_z.amax() + size_c.amax())):
            return squared
        rows, columns = (squared < lossy * (size_z + size_c)).nonzero(as_tuple=True)
    largest = precision.factor if isinstance(precision, LowRankPrecision) else precision
    chunk = max(1, 2**22 // (z.shape[1] if largest is None else largest[0].numel()))
    for i in range(0, len(rows), chunk):
        at = rows[i : i + chunk], columns[i : i + chunk]
        # Checkpointed, so that the differences of all chunks are never there at the same time.
        exact = checkpoint(_squared_one_by_one, z, centroids, precision, *at, use_reentrant=False)
        squared = squared.index_put(at, exact)
    return squared


def _centred(z: Tensor, centroids: Tensor, precision: Precision | None) -> tuple[Tensor, Tensor]:
    """Both shifted by a common offset, which changes no distance: the expanded square of large numbers loses digits."""
    sample = centroids.detach()[:: 1 + len(centroids) // 64]
    origin = sample.mean(0)
    # The copy takes time: without a precision it is made only where the spread is small beside the offset.
    if precision is None and bool((sample - origin).square().sum() > 0.01 * sample.square().sum()):
        return z, centroids
    return z - origin, centroids - origin


def _expanded(z: Tensor, centroids: Tensor, precision: Precision | None) -> tuple[Tensor, Tensor, Tensor]:
    """zᵀΛz − 2 zᵀΛμ + μᵀΛμ by products of matrices (B, P), and its first (B, 1 or P) and its last term (P,)."""
    if precision is None:
        size_z, size_c = z.square().sum(1, keepdim=True), torch.linalg.vector_norm(centroids, dim=1).square()
        weighted = centroids
    elif isinstance(precision, LowRankPrecision):
        squared, size_z, size_c = _expanded(z, centroids, precision.diagonal)
        factor = precision.factor.to(z.dtype)
        num_pairs, _, rank = factor.shape
        explained = z @ factor.movedim(0, 1).reshape(z.shape[1], num_pairs * rank)  # (B, P·R)
        offset = torch.einsum("pf,pfr->pr", centroids, factor)
        return squared - (explained.view(len(z), num_pairs, rank) - offset).square().sum(2), size_z, size_c
    elif precision.ndim == 2:
        weighted = precision.to(z.dtype) * centroids
        size_z, size_c = z.square() @ precision.to(z.dtype).T, (weighted * centroids).sum(1)
    else:
        full = precision.to(z.dtype)
        weighted = torch.einsum("pfg,pg->pf", full, centroids)
        outer = (z[:, :, None] * z[:, None, :]).flatten(1)  # (B, F²): full precisions are for small F
        size_z, size_c = outer @ full.flatten(1).T, (weighted * centroids).sum(1)
    return torch.addmm(size_c, z, weighted.T, alpha=-2).add_(size_z), size_z, size_c


def _squared_one_by_one(
    z: Tensor, centroids: Tensor, precision: Precision | None, rows: Tensor, columns: Tensor
) -> Tensor:
    """The squared distances of some entries (n,) of the table, from the differences themselves."""
    delta = z[rows] - centroids[columns]  # (n, F)
    if precision is None:
        return delta.square().sum(1)
    if isinstance(precision, LowRankPrecision):
        inside = torch.einsum("nf,nfr->nr", delta, precision.factor[columns].to(z.dtype)).square().sum(1)
        return _weigh(delta, precision.diagonal[columns]) - inside
    return _weigh(delta, precision[columns])


def _weigh(delta: Tensor, precision: Tensor) -> Tensor:
    """δᵀ Λ δ, delta (n, F), precision (n, F) or (n, F, F) → (n,)."""
    precision = precision.to(delta.dtype)
    if precision.ndim == 2:
        return (delta.square() * precision).sum(1)
    return torch.einsum("nf,nfg,ng->n", delta, precision, delta)


def _normalised(precision: Precision | None) -> tuple[Precision | None, float]:
    """A precision whose largest entry is about 1, and the factor that was taken out."""
    if precision is None:
        return None, 1.0
    if isinstance(precision, LowRankPrecision):
        require_finite(precision.diagonal, "precision")
        strength = _power_of_two(precision.diagonal)
        return LowRankPrecision(precision.diagonal / strength, precision.factor / strength**0.5), strength
    require_finite(precision, "precision")
    strength = _power_of_two(precision)
    return precision / strength, strength


def _power_of_two(values: Tensor) -> float:
    """About the largest value; to divide by a power of two costs no digits."""
    _, exponent = math.frexp(float(values.detach().abs().max()))
    return 2.0 ** max(exponent - 1, -120)


def _root(squared: Tensor) -> Tensor:
    return _Root.apply(squared)


class _Root(torch.autograd.Function):
    """The square root with gradient 0 at 0 (and below, where rounding put it)."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        root = squared.clamp_min(0).sqrt_()
        ctx.save_for_backward(root)
        ctx.tiny = torch.finfo(root.dtype).tiny ** 0.5
        ctx.vanishes = bool(root.numel()) and bool(root.amin() <= ctx.tiny)
        return root

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (root,) = ctx.saved_tensors
        if ctx.vanishes:
            return grad * (root > ctx.tiny) / (2 * root.clamp_min(ctx.tiny))
        return grad / (2 * root)


def in_full_precision(like: Tensor) -> torch.autocast:
    """Differences of squares need all the digits that there are, also where a network runs in fewer (autocast)."""
    return torch.autocast(like.device.type, enabled=False)


class NotFinite(ValueError):
    """Features or statistics that are no numbers, as when training diverges."""


def require_finite(values: Tensor, name: str) -> None:
    """Raise an error that names the first entry that is not a number."""
    wrong = (~torch.isfinite(values)).nonzero()
    if len(wrong):
        place = ", ".join(map(str, wrong[0].tolist()))
        raise NotFinite(f"{name}[{place}] is NaN or infinite; features and statistics must be finite")
