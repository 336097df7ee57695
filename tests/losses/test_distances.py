import math
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from crosstail.losses import LowRankPrecision, pair_distances
from crosstail.losses.distances import Precision, _Exact, split

METRICS = ("euclidean", "diagonal", "low_rank", "full")


def make(metric: str, *, samples: int = 4, pairs: int = 5, features: int = 3, seed: int = 0) -> tuple[Any, ...]:
    """Float64 features (B, F), centroids (P, F) and precision of P pairs."""
    torch.manual_seed(seed)
    z, centroids = torch.randn(samples, features).double(), torch.randn(pairs, features).double()
    root = torch.randn(pairs, features, features).double() / features**0.5
    precision: Precision | None = None
    if metric == "diagonal":
        precision = 0.5 + torch.rand(pairs, features).double()
    elif metric == "low_rank":
        # a ≥ 1 and the trace of WWᵀ is 0.72: diag(a) − WWᵀ is positive definite.
        factor = 0.6 * torch.nn.functional.normalize(root[..., :2], dim=1)
        precision = LowRankPrecision(1.0 + torch.rand(pairs, features).double(), factor)
    elif metric == "full":
        precision = root @ root.mT + 0.1 * torch.eye(features).double()
    return z, centroids, precision


def in_dtype(precision: Precision | None, dtype: torch.dtype) -> Precision | None:
    if isinstance(precision, LowRankPrecision):
        return LowRankPrecision(*(part.to(dtype) for part in precision))
    return None if precision is None else precision.to(dtype)


def oracle(z: Tensor, centroids: Tensor, precision: Precision | None) -> Tensor:
    """One entry of δᵀ Λ δ at a time."""
    result = torch.zeros(len(z), len(centroids), dtype=torch.float64)
    num_features = z.shape[1]
    for p in range(len(centroids)):
        matrix = torch.eye(num_features, dtype=torch.float64)
        if isinstance(precision, LowRankPrecision):
            matrix = torch.diag(precision.diagonal[p]) - precision.factor[p] @ precision.factor[p].T
        elif precision is not None:
            matrix = precision[p] if precision.ndim == 3 else torch.diag(precision[p])
        weights = matrix.tolist()
        for i in range(len(z)):
            delta = (z[i] - centroids[p]).tolist()
            squared = sum(delta[f] * weights[f][g] * delta[g] for f in range(num_features) for g in range(num_features))
            result[i, p] = math.sqrt(max(squared, 0.0))
    return result


@pytest.mark.parametrize("metric", METRICS)
class TestAllMetrics:
    @given(seed=st.integers(0, 10**6), samples=st.integers(1, 6), pairs=st.integers(1, 6), features=st.integers(1, 5))
    @settings(deadline=None, max_examples=15)
    def test_against_loops(self, metric: str, seed: int, samples: int, pairs: int, features: int) -> None:
        z, centroids, precision = make(metric, samples=samples, pairs=pairs, features=features, seed=seed)
        torch.testing.assert_close(
            pair_distances(z, centroids, precision), oracle(z, centroids, precision), rtol=1e-9, atol=1e-9
        )

    @given(seed=st.integers(0, 10**6), offset=st.floats(-5, 5), spread=st.floats(-5, 5), scale=st.floats(-25, 25))
    @example(seed=73, offset=5.0, spread=0.125, scale=20.0)  # an offset, and squares beyond a float
    @settings(deadline=None, max_examples=30)
    def test_float32_has_three_correct_digits_whatever_the_offset(
        self, metric: str, seed: int, offset: float, spread: float, scale: float
    ) -> None:
        z, centroids, precision = make(metric, features=20, seed=seed)
        centroids *= 10**spread
        z, centroids = (((part + 10**offset) * 10**scale).float() for part in (z, centroids))
        found = pair_distances(z, centroids, in_dtype(precision, torch.float32))
        expected = oracle(z.double(), centroids.double(), precision)
        torch.testing.assert_close(found.double(), expected, rtol=1e-3, atol=0)

    def test_gradcheck(self, metric: str) -> None:
        z, centroids, precision = make(metric)
        assert gradcheck(
            lambda z, centroids: pair_distances(z, centroids, precision),
            (z.requires_grad_(), centroids.requires_grad_()),
        )

    def test_gradient_of_recomputed_entries(self, metric: str) -> None:
        z, centroids, precision = make(metric)
        z = torch.cat([z, centroids + 1e-6 * z[:1]])  # so near that the expanded square would have no digit left
        z.requires_grad_()
        distances = pair_distances(z, centroids, precision)
        distances.diagonal(-4).sum().backward()
        assert z.grad is not None
        for p in range(len(centroids)):
            delta = (z.detach()[4 + p] - centroids[p]).requires_grad_()
            # The distance is linear along δ, so that the gradient of the same direction a million times longer is it.
            lone = None
            if isinstance(precision, LowRankPrecision):
                lone = LowRankPrecision(*(part[p : p + 1] for part in precision))
            elif precision is not None:
                lone = precision[p : p + 1]
            pair_distances(1e6 * delta[None], torch.zeros(1, 3).double(), lone).sum().backward()
            assert delta.grad is not None
            torch.testing.assert_close(z.grad[4 + p], delta.grad / 1e6, rtol=1e-4, atol=1e-6)

    def test_second_derivatives_of_recomputed_entries(self, metric: str) -> None:
        z, centroids, precision = make(metric)
        parts = [part for part in (z, centroids, *split(precision)) if part is not None]
        nothing = [None] * (4 - len(parts))
        rows, columns = torch.tensor([0, 3, 3]), torch.tensor([1, 1, 4])
        for part in parts:
            part.requires_grad_()
        assert gradgradcheck(lambda *given: _Exact.apply(rows, columns, *given, *nothing), parts)

    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_zero_has_gradient_zero(self, metric: str, dtype: torch.dtype) -> None:
        _, centroids, precision = make(metric)
        centroids = centroids.to(dtype) + 3
        z = centroids.clone().requires_grad_()
        distances = pair_distances(z, centroids, in_dtype(precision, dtype))
        assert (distances.detach().diagonal() == 0).all()
        distances.diagonal().sum().backward()
        assert z.grad is not None
        assert (z.grad == 0).all()

    @pytest.mark.parametrize("size", [1e-36, 1e-25, 1e-18, 1e18, 1e25, 1e37])
    def test_squares_beyond_a_float(self, metric: str, size: float) -> None:
        z, centroids, precision = make(metric)
        scaled = (z * size).float().requires_grad_()
        found = pair_distances(scaled, (centroids * size).float(), in_dtype(precision, torch.float32))
        torch.testing.assert_close(found.double() / size, oracle(z, centroids, precision), rtol=1e-4, atol=1e-4)
        found.sum().backward()
        exact = z.clone().requires_grad_()
        pair_distances(exact, centroids, precision).sum().backward()
        assert scaled.grad is not None
        assert exact.grad is not None
        torch.testing.assert_close(scaled.grad.double(), exact.grad, rtol=1e-3, atol=1e-4)

    @pytest.mark.parametrize(("samples", "pairs"), [(0, 5), (4, 0), (0, 0)])
    def test_nothing(self, metric: str, samples: int, pairs: int) -> None:
        z, centroids, precision = make(metric, samples=samples, pairs=pairs)
        assert pair_distances(z.requires_grad_(), centroids, precision).shape == (samples, pairs)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
    def test_precision_in_another_dtype(self, metric: str, dtype: torch.dtype) -> None:
        z, centroids, precision = make(metric)
        found = pair_distances(z.to(dtype), centroids, precision)
        assert found.dtype == torch.float32
        torch.testing.assert_close(
            found.double(), oracle(z.to(dtype).double(), centroids, precision), rtol=1e-4, atol=0
        )
        found = pair_distances(z, centroids, in_dtype(precision, torch.float32))
        assert found.dtype == torch.float64


@pytest.mark.parametrize("metric", METRICS[1:])
@pytest.mark.parametrize("strength", [1e-37, 1e-20, 1e20, 1e37])
def test_strong_and_weak_precisions(metric: str, strength: float) -> None:
    z, centroids, precision = make(metric)
    expected = oracle(z, centroids, precision) * strength**0.5
    if isinstance(precision, LowRankPrecision):
        precision = LowRankPrecision(precision.diagonal * strength, precision.factor * strength**0.5)
    else:
        precision = precision * strength
    found = pair_distances(100 * z.float(), 100 * centroids.float(), in_dtype(precision, torch.float32))
    torch.testing.assert_close(found.double(), expected * 100, rtol=1e-4, atol=0)


@pytest.mark.parametrize("metric", METRICS)
def test_two_clusters_far_apart(metric: str) -> None:
    z, centroids, precision = make(metric, samples=12, pairs=10, features=16)
    z[6:] += 1e4
    centroids[5:] += 1e4
    z, centroids = z.float(), centroids.float()
    found = pair_distances(z, centroids, in_dtype(precision, torch.float32))
    torch.testing.assert_close(found.double(), oracle(z.double(), centroids.double(), precision), rtol=1e-5, atol=0)


def test_triangle_inequality_and_symmetry() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 8)
    d = pair_distances(x, x)
    torch.testing.assert_close(d, d.T, rtol=1e-4, atol=1e-6)
    assert (d[:, None] <= d[:, :, None] + d[None] + 1e-5).all()


def test_shape_of_a_low_rank_precision_can_change() -> None:
    precision = LowRankPrecision(torch.zeros(2, 3, 5), torch.zeros(2, 3, 5, 4)).reshape(6)
    assert precision.diagonal.shape == (6, 5)
    assert precision.factor.shape == (6, 5, 4)
