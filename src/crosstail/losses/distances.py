"""Distances from every sample to every pair's centroid, by matrix products: never a tensor of size B×P×F."""

import math
from contextlib import AbstractContextManager, nullcontext
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


def pair_distances(
    z: Tensor, centroids: Tensor, precision: Precision | None = None, *, validate: bool = True
) -> Tensor:
    """Euclidean or, with a precision, Mahalanobis distances; z (B, F), centroids (P, F) → (B, P).

    d(z, μ) = √((z − μ)ᵀ Λ (z − μ)), Λ = I or Σ⁻¹. The gradient at distance 0 is 0, and neither the overflow of squares
    nor cancellation costs digits. NaN and infinite inputs are an error, or with `validate=False` give NaN.

    >>> pair_distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[5., 0.]])
    """
    wide = torch.float64 if z.dtype == torch.float64 else torch.float32
    distances = _host_distances if on_host(z) else _device_distances
    with in_full_precision(z):
        return distances(z.to(wide), centroids.to(wide), precision, validate)


def _device_distances(z: Tensor, centroids: Tensor, precision: Precision | None, validate: bool) -> Tensor:
    """Without a device-to-host read: float64 has the range and the digits that float32's squares lack."""
    if validate:
        _require_all_finite(z, centroids, precision)
    if z.device.type == "mps":  # has no float64
        return _root(_expanded(*_centred(z, centroids, precision), precision)[0])
    precise = _expanded(*_centred(z.double(), centroids.double(), precision), precision)[0]
    return _root(precise).to(z.dtype)


def _host_distances(z: Tensor, centroids: Tensor, precision: Precision | None, validate: bool) -> Tensor:
    """In the features' own precision; only what lost its range or its digits is computed again."""
    squared = _squared(z, centroids, precision)
    limits = torch.finfo(z.dtype)
    if squared.numel() == 0 or limits.tiny / limits.eps < peek(squared.amax()) < torch.inf:
        return _root(squared)
    if validate:
        _require_all_finite(z, centroids, precision)
    size = max(_power_of_two(z), _power_of_two(centroids))
    precision, strength = _normalised(precision)
    return _root(_squared(z / size, centroids / size, precision)) * (size * strength**0.5)


def _squared(z: Tensor, centroids: Tensor, precision: Precision | None) -> Tensor:
    """(z − μ)ᵀ Λ (z − μ), z (B, F), centroids (P, F) → (B, P)."""
    squared, size_z, size_c = _expanded(*_centred(z, centroids, precision), precision)
    with torch.no_grad():
        lossy = 2e3 * torch.finfo(squared.dtype).eps
        if squared.numel() == 0 or not peek(squared.amin() < lossy * (size_z.amax() + size_c.amax())):
            return squared
        # Cancellation has cost these entries most of their digits.
        rows, columns = map(torch.from_numpy, (squared < lossy * (size_z + size_c)).numpy().nonzero())
    largest = precision.factor if isinstance(precision, LowRankPrecision) else precision
    chunk = max(1, 2**22 // (z.shape[1] if largest is None else largest[0].numel()))
    for i in range(0, len(rows), chunk):
        at = rows[i : i + chunk], columns[i : i + chunk]
        # Checkpointed, so that the differences of only one chunk are in memory at a time.
        exact = checkpoint(_squared_one_by_one, z, centroids, precision, *at, use_reentrant=False)
        squared = squared.index_put(at, exact)
    return squared


def _centred(z: Tensor, centroids: Tensor, precision: Precision | None) -> tuple[Tensor, Tensor]:
    """Both shifted by a common offset, which changes no distance: the expanded square of large numbers loses digits."""
    sample = centroids.detach()[:: 1 + len(centroids) // 64]
    origin = sample.mean(0)
    if precision is None and on_host(z) and peek((sample - origin).square().sum() > 0.01 * sample.square().sum()):
        return z, centroids  # the offset is small beside the spread: not worth two copies
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
        strength = _power_of_two(precision.diagonal)
        return LowRankPrecision(precision.diagonal / strength, precision.factor / strength**0.5), strength
    strength = _power_of_two(precision)
    return precision / strength, strength


def _power_of_two(values: Tensor) -> float:
    """About the largest absolute value; dividing by a power of two is exact."""
    _, exponent = math.frexp(peek(values.abs().max()))
    return 2.0 ** max(exponent - 1, -120)


def _root(squared: Tensor) -> Tensor:
    return _Root.apply(squared)


class _Root(torch.autograd.Function):
    """The square root with gradient 0 at 0 (and below, where rounding put it)."""

    @staticmethod
    def forward(ctx: Any, squared: Tensor) -> Tensor:
        root = squared.clamp_min(0).sqrt_()
        ctx.save_for_backward(root)
        tiny = torch.finfo(root.dtype).tiny ** 0.5
        # On the host a minimum is cheaper than a mask in the backward pass.
        ctx.tiny = None if on_host(root) and root.numel() and peek(root.amin()) > tiny else tiny
        return root

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        (root,) = ctx.saved_tensors
        if ctx.tiny is None:
            return grad / (2 * root)
        return grad * (root > ctx.tiny) / (2 * root.clamp_min(ctx.tiny))


def on_host(values: Tensor) -> bool:
    """Whether values can be looked at without waiting for a device."""
    return values.device.type == "cpu"


def peek(value: Tensor) -> float:
    """A number on the host; through NumPy, which raises an error for any other device instead of waiting for it."""
    return float(value.detach().numpy())


def in_full_precision(like: Tensor) -> AbstractContextManager[Any]:
    """Disable autocast, on devices that have it: differences of squares need all digits."""
    kind = like.device.type
    return torch.autocast(kind, enabled=False) if torch.amp.is_autocast_available(kind) else nullcontext()


class NotFinite(ValueError):
    """NaN or infinite features or statistics, as when training diverges."""


def require_finite(values: Tensor, name: str) -> None:
    """Raise an error that names the first entry that is NaN or infinite."""
    wrong = (~torch.isfinite(values)).nonzero()
    if len(wrong):
        place = ", ".join(map(str, wrong[0].tolist()))
        raise NotFinite(f"{name}[{place}] is NaN or infinite; features and statistics must be finite")


def _require_all_finite(z: Tensor, centroids: Tensor, precision: Precision | None) -> None:
    require_finite(z, "z")
    require_finite(centroids, "centroids")
    for part in precision if isinstance(precision, LowRankPrecision) else (precision,):
        if part is not None:
            require_finite(part, "precision")
