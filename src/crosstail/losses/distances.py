"""Distances from every sample to every pair's centroid, by matrix products: never a tensor of size B×P×F."""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor


class LowRankPrecision(NamedTuple):
    """The inverse of (diagonal + low rank) covariances, diag(a) − W Wᵀ for each pair (Woodbury)."""

    diagonal: Tensor  # (..., F)
    factor: Tensor  # (..., F, R)

    def reshape(self, *pairs: int) -> "LowRankPrecision":
        """Change the leading (pair) dimensions."""
        diagonal, factor = self
        return LowRankPrecision(
            diagonal.reshape(*pairs, *diagonal.shape[-1:]), factor.reshape(*pairs, *factor.shape[-2:])
        )


Precision = Tensor | LowRankPrecision
"""Inverse covariances of P pairs: diagonal (P, F), full (P, F, F), or low rank."""


def pair_distances(
    z: Tensor, centroids: Tensor, precision: Precision | None = None, *, validate: bool = True
) -> Tensor:
    """Euclidean or, with a precision, Mahalanobis distances; z (B, F), centroids (P, F) → (B, P).

    d(z, μ) = √((z − μ)ᵀ Λ (z − μ)), Λ = I or Σ⁻¹. The gradient at distance 0 is 0, and the result is accurate even
    where squares overflow or cancel. NaN and infinite inputs are an error, or give NaN with `validate=False`.

    >>> pair_distances(torch.tensor([[3.0, 4.0]]), torch.tensor([[0.0, 0.0], [3.0, 4.0]]))
    tensor([[5., 0.]])
    """
    squares = _squared if on_host(z) else lambda *given: _expanded(*given)[0]
    return _distances(z, centroids, precision, validate, squares)


def matched_distances(
    z: Tensor, centroids: Tensor, precision: Precision | None = None, *, validate: bool = True
) -> Tensor:
    """Distances of each sample to K centroids of its own, else like that: z (B, F), centroids (B·K, F) → (B, K)."""
    return _distances(z, centroids, precision, validate, _squared_of_own)


Squares = Callable[[Tensor, Tensor, Precision | None], Tensor]


def _distances(z: Tensor, centroids: Tensor, precision: Precision | None, validate: bool, squares: Squares) -> Tensor:
    wide = torch.float64 if z.dtype == torch.float64 else torch.float32
    distances = _host_distances if on_host(z) else _device_distances
    with in_full_precision(z):
        return distances(z.to(wide), centroids.to(wide), precision, validate, squares)


def _device_distances(
    z: Tensor, centroids: Tensor, precision: Precision | None, validate: bool, squares: Squares
) -> Tensor:
    """Without device-to-host reads: in float64, which has the range and precision that squares in float32 lack."""
    if validate:
        _require_all_finite(z, centroids, precision)
    wide = z.dtype if z.device.type == "mps" else torch.float64  # MPS has no float64
    return _Root.apply(squares(z.to(wide), centroids.to(wide), precision)).to(z.dtype)


def _host_distances(
    z: Tensor, centroids: Tensor, precision: Precision | None, validate: bool, squares: Squares
) -> Tensor:
    """In the precision of the features; rescaled only where squares overflow or underflow."""
    squared = squares(z, centroids, precision)
    limits = torch.finfo(z.dtype)
    if squared.numel() == 0 or limits.tiny / limits.eps < peek(squared.amax()) < torch.inf:
        return _Root.apply(squared)
    if validate:
        _require_all_finite(z, centroids, precision)
    size = max(_power_of_two(z), _power_of_two(centroids))
    main, factor = split(precision)
    strength = 1.0 if main is None else _power_of_two(main)
    if main is not None:
        precision = main / strength if factor is None else LowRankPrecision(main / strength, factor / strength**0.5)
    return _Root.apply(squares(z / size, centroids / size, precision)) * (size * strength**0.5)


def _squared(z: Tensor, centroids: Tensor, precision: Precision | None) -> Tensor:
    """(z − μ)ᵀ Λ (z − μ), z (B, F), centroids (P, F) → (B, P)."""
    squared, size_z, size_c = _expanded(z, centroids, precision)
    with torch.no_grad():
        lossy = 2e3 * torch.finfo(squared.dtype).eps
        if squared.numel() == 0 or not peek(squared.amin() < lossy * (size_z.amax() + size_c.amax())):
            return squared
        # These entries have lost most of their digits to cancellation.
        rows, columns = map(torch.from_numpy, (squared < lossy * (size_z + size_c)).numpy().nonzero())
    main, factor = split(precision)
    largest = main if factor is None else factor
    chunk = max(1, 2**22 // (z.shape[1] if largest is None else largest[0].numel()))
    for i in range(0, len(rows), chunk):
        at = rows[i : i + chunk], columns[i : i + chunk]
        squared = squared.index_put(at, _Exact.apply(*at, z, centroids, main, factor))
    return squared


def _expanded(z: Tensor, centroids: Tensor, precision: Precision | None) -> tuple[Tensor, Tensor, Tensor]:
    """zᵀΛz − 2 zᵀΛμ + μᵀΛμ by matrix products (B, P), and its first (B, 1 or P) and its last term (P,)."""
    # A common offset changes no distance, but the expanded square of large numbers loses digits.
    sample = centroids.detach()[:: 1 + len(centroids) // 64]
    origin = sample.mean(0)
    small = precision is None and on_host(z)  # if the offset is small beside the spread, it is not worth two copies
    if not (small and peek((sample - origin).square().sum() > 0.01 * sample.square().sum())):
        z, centroids = z - origin, centroids - origin
    main, factor = (None if part is None else part.to(z.dtype) for part in split(precision))
    if main is None:
        size_z, size_c = z.square().sum(1, keepdim=True), torch.linalg.vector_norm(centroids, dim=1).square()
        weighted = centroids
    elif main.ndim == 2:
        weighted = main * centroids
        size_z, size_c = z.square() @ main.T, (weighted * centroids).sum(1)
    else:
        weighted = torch.einsum("pfg,pg->pf", main, centroids)
        outer = (z[:, :, None] * z[:, None, :]).flatten(1)  # (B, F²): full precisions are for small F
        size_z, size_c = outer @ main.flatten(1).T, (weighted * centroids).sum(1)
    squared = torch.addmm(size_c, z, weighted.T, alpha=-2).add_(size_z)
    if factor is not None:
        num_pairs, _, rank = factor.shape
        explained = z @ factor.movedim(0, 1).reshape(z.shape[1], num_pairs * rank)  # (B, P·R)
        offset = torch.einsum("pf,pfr->pr", centroids, factor)
        squared = squared - (explained.view(len(z), num_pairs, rank) - offset).square().sum(2)
    return squared, size_z, size_c


def _squared_of_own(z: Tensor, centroids: Tensor, precision: Precision | None) -> Tensor:
    """The squared distances of `matched_distances`, from the differences themselves."""
    each = len(centroids) // max(len(z), 1)
    if precision is None:
        return _OwnSquares.apply(z, centroids.view(len(z), each, z.shape[1]))
    columns = torch.arange(len(centroids), device=z.device)
    return _squared_one_by_one(columns // max(each, 1), columns, z, centroids, *split(precision)).view(len(z), each)


class _OwnSquares(torch.autograd.Function):
    """‖z − μ‖² for z (B, F), μ (B, K, F); the gradient by a matrix product is several times as fast as autograd's."""

    @staticmethod
    def forward(ctx: Any, z: Tensor, centroids: Tensor) -> Tensor:
        ctx.save_for_backward(z, centroids)
        return torch.linalg.vector_norm(z[:, None] - centroids, dim=2).square()

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None]:
        z, centroids = ctx.saved_tensors
        delta, grad = z[:, None] - centroids, 2 * grad
        to_centroids = -grad[:, :, None] * delta if ctx.needs_input_grad[1] else None
        return (grad[:, None] @ delta)[:, 0], to_centroids


def _squared_one_by_one(
    rows: Tensor, columns: Tensor, z: Tensor, centroids: Tensor, *precision: Tensor | None
) -> Tensor:
    """The squared distances of some entries (n,) of the table, from the differences themselves."""
    delta = z[rows] - centroids[columns]  # (n, F)
    main, factor = (None if part is None else part[columns].to(z.dtype) for part in precision)
    if main is None:
        return delta.square().sum(1)
    if main.ndim == 3:
        return torch.einsum("nf,nfg,ng->n", delta, main, delta)
    squared = (delta.square() * main).sum(1)
    return squared if factor is None else squared - torch.einsum("nf,nfr->nr", delta, factor).square().sum(1)


class _Exact(torch.autograd.Function):
    """As torch.utils.checkpoint, which imports the compiler: differences of one chunk are in memory at a time."""

    @staticmethod
    def forward(ctx: Any, *given: Tensor | None) -> Tensor:
        ctx.save_for_backward(*given)
        return _squared_one_by_one(*given)  # type: ignore[arg-type]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        needed = [part for part, asked in zip(ctx.saved_tensors, ctx.needs_input_grad, strict=True) if asked]
        twice = torch.is_grad_enabled()
        with torch.enable_grad():
            weighted = (_squared_one_by_one(*ctx.saved_tensors) * grad).sum()  # `grad_outputs` would import sympy
        each = iter(torch.autograd.grad(weighted, needed, create_graph=twice))
        return tuple(next(each) if asked else None for asked in ctx.needs_input_grad)


def split(precision: Precision | None) -> tuple[Tensor | None, Tensor | None]:
    """The diagonal or full part of a precision, and its low-rank factor."""
    return precision if isinstance(precision, LowRankPrecision) else (precision, None)


def each_part(precision: Precision | None, change: Callable[[Tensor], Tensor]) -> Precision | None:
    """A precision with every part of it changed alike."""
    main, factor = (None if part is None else change(part) for part in split(precision))
    return main if main is None or factor is None else LowRankPrecision(main, factor)


def _power_of_two(values: Tensor) -> float:
    """About the largest absolute value; dividing by a power of two is exact."""
    _, exponent = math.frexp(peek(values.abs().max()))
    return 2.0 ** max(exponent - 1, -120)


class _Root(torch.autograd.Function):
    """The square root, with gradient 0 at 0 (and below, which rounding may cause)."""

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
            return (grad / root).mul_(0.5)
        return grad * (root > ctx.tiny) / (2 * root.clamp_min(ctx.tiny))


def on_host(values: Tensor) -> bool:
    """Whether values can be read without waiting for a device."""
    return values.device.type == "cpu"


def peek(value: Tensor) -> float:
    """Read a number through NumPy, which raises an error for a tensor on a device instead of waiting for it."""
    return float(value.detach().numpy())


def in_full_precision(like: Tensor) -> AbstractContextManager[Any]:
    """Disable autocast, on devices that have it: differences of squares need full precision."""
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
    main, factor = split(precision)
    for name, values in (("z", z), ("centroids", centroids), ("precision", main), ("precision", factor)):
        if values is not None:
            require_finite(values, name)
