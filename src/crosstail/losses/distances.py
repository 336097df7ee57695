"""Distances from every sample to every pair's centroid, by matrix products: never a tensor of size B×P×F."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor

from crosstail.losses.host import in_full_precision, on_host, peek, readable, require_finite


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
    return _distances(z, centroids, precision, validate, _squared if on_host(z) else _expanded)


def matched_distances(
    z: Tensor, centroids: Tensor, precision: Precision | None = None, *, validate: bool = True
) -> Tensor:
    """Distances of each sample to K centroids of its own, else like that: z (B, F), centroids (B·K, F) → (B, K)."""
    return _distances(z, centroids, precision, validate, _squared_of_own)


Squares = Callable[[Tensor, Tensor, Precision | None], tuple[Tensor, ...]]
"""A function whose first result are the squared distances."""


def _distances(z: Tensor, centroids: Tensor, precision: Precision | None, validate: bool, squares: Squares) -> Tensor:
    wide = torch.float64 if z.dtype == torch.float64 else torch.float32
    distances = _host_distances if on_host(z) else _device_distances
    with in_full_precision(z):
        return distances(z.to(wide), centroids.to(wide), precision, validate and readable(), squares)


def _device_distances(
    z: Tensor, centroids: Tensor, precision: Precision | None, validate: bool, squares: Squares
) -> Tensor:
    """Without device-to-host reads: in float64, which has the range and precision that squares in float32 lack."""
    if validate:
        _require_all_finite(z, centroids, precision)
    wide = z.dtype if z.device.type == "mps" else torch.float64  # MPS has no float64
    return _Root.apply(squares(z.to(wide), centroids.to(wide), precision)[0], False).to(z.dtype)


def _host_distances(
    z: Tensor, centroids: Tensor, precision: Precision | None, validate: bool, squares: Squares
) -> Tensor:
    """In the precision of the features; rescaled only where squares overflow or underflow."""
    squared, *ends = squares(z, centroids, precision)
    low, high = map(peek, ends)
    limits = torch.finfo(z.dtype)
    if limits.tiny / limits.eps < high < torch.inf:
        return _Root.apply(squared, low > limits.tiny)
    if validate:
        _require_all_finite(z, centroids, precision)
    size = max(_power_of_two(z), _power_of_two(centroids))
    main, factor = split(precision)
    strength = 1.0 if main is None else _power_of_two(main)
    if main is not None:
        precision = main / strength if factor is None else LowRankPrecision(main / strength, factor / strength**0.5)
    return _Root.apply(squares(z / size, centroids / size, precision)[0], False) * (size * strength**0.5)


def _squared(z: Tensor, centroids: Tensor, precision: Precision | None) -> tuple[Tensor, Tensor, Tensor]:
    """(z − μ)ᵀ Λ (z − μ), z (B, F), centroids (P, F) → (B, P); the least and the largest of them."""
    squared, size_z, size_c = _expanded(z, centroids, precision)
    low, high = _ends(squared)
    with torch.no_grad():
        lossy = 2e3 * torch.finfo(squared.dtype).eps
        if squared.numel() == 0 or not peek(low < lossy * (size_z.amax() + size_c.amax())):
            return squared, low, high
        # These entries have lost most of their digits to cancellation.
        rows, columns = map(torch.from_numpy, (squared < lossy * (size_z + size_c)).numpy().nonzero())
    main, factor = split(precision)
    largest = main if factor is None else factor
    chunk = max(1, 2**22 // (z.shape[1] if largest is None else largest[0].numel()))
    for i in range(0, len(rows), chunk):
        at = rows[i : i + chunk], columns[i : i + chunk]
        squared = squared.index_put(at, _Exact.apply(*at, z, centroids, main, factor))
    return squared, *_ends(squared)


def _ends(values: Tensor) -> tuple[Tensor, Tensor]:
    """The least and the largest value, in one pass; 1 if there are none."""
    low, high = torch.aminmax(values.detach() if values.numel() else values.new_ones(1))
    return low, high


def _expanded(z: Tensor, centroids: Tensor, precision: Precision | None) -> tuple[Tensor, Tensor, Tensor]:
    """zᵀΛz − 2 zᵀΛμ + μᵀΛμ by matrix products (B, P), and its first (B, 1 or P) and its last term (P,)."""
    # A common offset changes no distance, but the expanded square of large numbers loses digits.
    sample = centroids.detach()[:: 1 + len(centroids) // 64]
    origin = sample.mean(0)
    small = precision is None and on_host(z)  # if the offset is small beside the spread, it is not worth two copies
    size = torch.linalg.vector_norm
    if not (small and peek(size(sample - origin) > 0.1 * size(sample))):
        z, centroids = z - origin, centroids - origin
    main, factor = (None if part is None else part.to(z.dtype) for part in split(precision))
    if main is None:
        plain: tuple[Tensor, Tensor, Tensor] = _Euclidean.apply(z, centroids)
        return plain
    if main.ndim == 2:
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


class _Euclidean(torch.autograd.Function):
    """‖z‖² − 2 z·μ + ‖μ‖², ‖z‖² and ‖μ‖²; the gradient of the first takes half the passes of autograd's."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor, centroids: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        size_z, size_c = (torch.linalg.vector_norm(values, dim=1).square() for values in (z, centroids))
        return torch.addmm(size_c, z, centroids.T, alpha=-2).add_(size_z[:, None]), size_z[:, None], size_c

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: tuple[Tensor, Tensor, Tensor]) -> None:
        ctx.save_for_backward(*inputs)
        ctx.mark_non_differentiable(*output[1:])

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Tensor) -> tuple[Tensor | None, ...]:
        def both(grad: Tensor, of: Tensor, to: Tensor) -> Tensor:
            return torch.addmm(of * grad.sum(1, keepdim=True), grad, to, alpha=-2, beta=2)

        (z, centroids), (first, second) = ctx.saved_tensors, ctx.needs_input_grad
        return both(grad, z, centroids) if first else None, both(grad.T, centroids, z) if second else None


def _squared_of_own(z: Tensor, centroids: Tensor, precision: Precision | None) -> tuple[Tensor, Tensor, Tensor]:
    """The squared distances of `matched_distances`, from the differences themselves."""
    each = len(centroids) // max(len(z), 1)
    if precision is None:
        squared = _OwnSquares.apply(z, centroids.view(len(z), each, z.shape[1]))
    else:
        columns = torch.arange(len(centroids), device=z.device)
        parts = split(precision)
        squared = _squared_one_by_one(columns // max(each, 1), columns, z, centroids, *parts).view(len(z), each)
    return squared, *_ends(squared)


class _OwnSquares(torch.autograd.Function):
    """‖z − μ‖² for z (B, F), μ (B, K, F); the gradient by a matrix product is several times as fast as autograd's."""

    generate_vmap_rule = True

    @staticmethod
    def forward(z: Tensor, centroids: Tensor) -> Tensor:
        return torch.linalg.vector_norm(z[:, None] - centroids, dim=2).square()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, Tensor], output: Tensor) -> None:
        ctx.save_for_backward(*inputs)

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
    """The square root, with gradient 0 at 0 (and below, which rounding may cause) unless all squares are `positive`."""

    generate_vmap_rule = True

    @staticmethod
    def forward(squared: Tensor, positive: bool) -> Tensor:
        return squared.sqrt() if positive else squared.clamp_min(0).sqrt_()

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, bool], output: Tensor) -> None:
        ctx.save_for_backward(output)
        ctx.positive = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        (root,) = ctx.saved_tensors
        if ctx.positive:
            return grad.new_zeros(()).addcdiv(grad, root, value=0.5), None  # in one pass
        tiny = torch.finfo(root.dtype).tiny ** 0.5
        return grad * (root > tiny) / (2 * root.clamp_min(tiny)), None


def _require_all_finite(z: Tensor, centroids: Tensor, precision: Precision | None) -> None:
    main, factor = split(precision)
    for name, values in (("z", z), ("centroids", centroids), ("precision", main), ("precision", factor)):
        if values is not None:
            require_finite(values, name)
