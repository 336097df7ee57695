"""Distances from every sample to every pair's centroid, by matrix products: never a tensor of size B×P×F."""

from typing import Any, NamedTuple

import torch
from torch import Tensor


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

    d(z, μ) = √((z − μ)ᵀ Λ (z − μ)), Λ = I or Σ⁻¹. The gradient at distance 0 is 0, distances far beyond the square
    root of the largest float are finite, and those far below the features' norms are computed again without
    cancellation.

    >>> pair_distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[5., 0.]])
    """
    wide = torch.float64 if z.dtype == torch.float64 else torch.float32
    z, centroids = z.to(wide), centroids.to(wide)
    # Distances do not change under a common shift; around the origin the expanded square loses the least.
    origin = centroids.detach().mean(0)
    z, centroids = z - origin, centroids - origin
    squared = _squared(z, centroids, precision)
    if not bool(torch.isfinite(squared).all()):
        _require_finite(z, "z")
        _require_finite(centroids, "centroids")
        scale = max(float(z.detach().abs().max()), float(centroids.detach().abs().max()))
        return pair_distances(z / scale, centroids / scale, precision) * scale
    return _Root.apply(squared)  # type: ignore[no-any-return, no-untyped-call]


def _squared(z: Tensor, centroids: Tensor, precision: Precision | None) -> Tensor:
    """(z − μ)ᵀ Λ (z − μ) expanded into products of matrices, z (B, F), centroids (P, F) → (B, P)."""
    if precision is None:
        scale_z, scale_c = z.square().sum(1), torch.linalg.vector_norm(centroids, dim=1).square()
        squared = torch.addmm(scale_c, z, centroids.T, alpha=-2) + scale_z[:, None]
    elif isinstance(precision, LowRankPrecision):
        diagonal, factor = (part.to(z.dtype) for part in precision)
        num_pairs, _, rank = factor.shape
        explained = z @ factor.movedim(0, 1).reshape(z.shape[1], num_pairs * rank)  # (B, P·R)
        offset = torch.einsum("pf,pfr->pr", centroids, factor)
        inside = (explained.view(-1, num_pairs, rank) - offset).square().sum(-1)
        return _squared(z, centroids, diagonal) - inside
    elif precision.ndim == 2:
        diagonal = precision.to(z.dtype)
        weighted = diagonal * centroids
        scale_z, scale_c = z.square() @ diagonal.T, (weighted * centroids).sum(1)
        squared = torch.addmm(scale_c, z, weighted.T, alpha=-2) + scale_z
        scale_z = scale_z.amax(1)
    else:
        full = precision.to(z.dtype)
        weighted = torch.einsum("pfg,pg->pf", full, centroids)
        outer = (z[:, :, None] * z[:, None, :]).flatten(1)  # (B, F²): full precisions are for small F
        scale_z, scale_c = outer @ full.flatten(1).T, (weighted * centroids).sum(1)
        squared = torch.addmm(scale_c, z, weighted.T, alpha=-2) + scale_z
        scale_z = scale_z.amax(1)
    return _without_cancellation(squared, scale_z, scale_c, z, centroids, precision)


def _without_cancellation(
    squared: Tensor, scale_z: Tensor, scale_c: Tensor, z: Tensor, centroids: Tensor, precision: Tensor | None
) -> Tensor:
    """Compute the entries again that are so small beside their terms that few correct digits are left."""
    threshold = 2e3 * torch.finfo(squared.dtype).eps
    with torch.no_grad():
        lost = squared < threshold * (scale_z[:, None] + scale_c)
        if not bool(lost.any()):
            return squared
        rows, columns = lost.nonzero(as_tuple=True)
    chunk = max(1, 2**22 // z.shape[1])
    exact = []
    for i in range(0, len(rows), chunk):
        delta = z[rows[i : i + chunk]] - centroids[columns[i : i + chunk]]  # (chunk, F)
        if precision is None:
            exact.append(delta.square().sum(1))
        elif precision.ndim == 2:
            exact.append((delta.square() * precision[columns[i : i + chunk]]).sum(1))
        else:
            exact.append(torch.einsum("nf,nfg,ng->n", delta, precision[columns[i : i + chunk]], delta))
    return squared.index_put((rows, columns), torch.cat(exact))


class _Root(torch.autograd.Function):
    """The square root with gradient 0 at 0 (and below, where rounding put it)."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        root = squared.clamp_min(0).sqrt_()
        ctx.save_for_backward(root)
        return root

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:  # type: ignore[override]
        (root,) = ctx.saved_tensors
        tiny = torch.finfo(root.dtype).tiny ** 0.5
        return grad * (root > tiny) / (2 * root.clamp_min(tiny))


def _require_finite(values: Tensor, name: str) -> None:
    wrong = (~torch.isfinite(values)).nonzero()
    if len(wrong):
        row, column = wrong[0].tolist()
        raise ValueError(f"{name}[{row}, {column}] is NaN or infinite; features and centroids must be finite")
