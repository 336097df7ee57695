import copy
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.losses.largest_tensor import LargestTensor
from torch import Tensor, nn
from torch.autograd import gradcheck, gradgradcheck
from torch.utils._python_dispatch import TorchDispatchMode

from crosstail.losses import (
    BoDALoss,
    LowRankPrecision,
    PairStatistics,
    boda_loss,
    contrast,
    negatives,
    pair_distances,
    rescaled_boda_loss,
    statistics,
)
from crosstail.losses import distances as distances_module
from crosstail.losses.distances import Precision, each_part

METRICS = ("euclidean", "diagonal", "low_rank", "full")
EQUATIONS: dict[str, dict[str, Any]] = {
    "equation 1": {"balanced": False},
    "equation 2": {"nu": 0.0},
    "equation 3, nu 0.5": {"nu": 0.5},
    "equation 3, nu 1": {"nu": 1.0},
    "equation 3, nu 1.5": {"nu": 1.5},
}


@dataclass(frozen=True)
class Problem:
    """A batch, the statistics of every pair and the counts of the training set."""

    z: Tensor
    y: Tensor
    domain: Tensor
    centroids: Tensor
    counts: Tensor
    precision: Precision | None = None

    def loss(self, rescaled: bool = False, **options: Any) -> Tensor:
        loss = rescaled_boda_loss if rescaled else boda_loss
        return loss(self.z, self.y, self.domain, self.centroids, self.counts, precision=self.precision, **options)

    def with_grad(self) -> "Problem":
        return replace(self, z=self.z.detach().clone().requires_grad_())

    def gradient(self, **options: Any) -> tuple[Tensor, Tensor]:
        """The loss, and the gradient of its sum in the features."""
        p = self.with_grad()
        loss = p.loss(**options)
        return loss.detach(), torch.autograd.grad(loss.sum(), p.z)[0]

    def to(self, dtype: torch.dtype) -> "Problem":
        return replace(self, z=self.z.to(dtype), centroids=self.centroids.to(dtype))

    def per_pair(self, change: Callable[[Tensor], Tensor]) -> "Problem":
        """Every table with a change of its two leading dimensions."""
        precision = each_part(self.precision, change)
        return replace(self, centroids=change(self.centroids), counts=change(self.counts), precision=precision)


def make(
    seed: int = 0,
    *,
    domains: int = 3,
    classes: int = 4,
    features: int = 5,
    batch: int = 9,
    absent: float = 0.0,
    largest: int = 9,
    metric: str = "euclidean",
) -> Problem:
    torch.manual_seed(seed)
    centroids = torch.randn(domains, classes, features, dtype=torch.float64)
    counts = torch.randint(1, largest + 1, (domains, classes))
    counts[torch.rand(domains, classes) < absent] = 0
    precision: Precision | None = None
    root = torch.randn(domains, classes, features, features, dtype=torch.float64) / features**0.5
    if metric == "diagonal":
        precision = 0.5 + torch.rand(domains, classes, features, dtype=torch.float64)
    elif metric == "low_rank":
        # a ≥ 1 and the trace of WWᵀ is 0.72: diag(a) − WWᵀ is positive definite.
        factor = 0.6 * nn.functional.normalize(root[..., :2], dim=2)
        precision = LowRankPrecision(1.0 + torch.rand(domains, classes, features).double(), factor)
    elif metric == "full":
        precision = root @ root.mT + 0.1 * torch.eye(features, dtype=torch.float64)
    return Problem(
        torch.randn(batch, features, dtype=torch.float64),
        torch.randint(classes, (batch,)),
        torch.randint(domains, (batch,)),
        centroids,
        counts,
        precision,
    )


def dense(precision: Precision | None, d: int, c: int, num_features: int) -> list[list[float]]:
    """The matrix Λ of one pair, whatever its form."""
    if precision is None:
        matrix = torch.eye(num_features)
    elif isinstance(precision, LowRankPrecision):
        matrix = torch.diag(precision.diagonal[d, c]) - precision.factor[d, c] @ precision.factor[d, c].T
    elif precision.ndim == 3:
        matrix = torch.diag(precision[d, c])
    else:
        matrix = precision[d, c]
    return matrix.tolist()


def distances(p: Problem) -> list[dict[tuple[int, int], float]]:
    """√((z − μ)ᵀ Λ (z − μ)) of every sample to every present pair."""
    num_domains, num_classes, num_features = p.centroids.shape
    table = []
    for z in p.z.tolist():
        row = {}
        for d, c in np.ndindex(num_domains, num_classes):
            if p.counts[d, c] > 0:
                delta = [a - b for a, b in zip(z, p.centroids[d, c].tolist(), strict=True)]
                precision = dense(p.precision, d, c, num_features)
                squared = 0.0
                for f, g in np.ndindex(num_features, num_features):
                    squared += delta[f] * precision[f][g] * delta[g]
                row[d, c] = math.sqrt(squared)
        table.append(row)
    return table


def printed(
    p: Problem, *, nu: float = 1.0, temperature: float = 1.0, balanced: bool = True
) -> tuple[list[float], list[bool]]:
    """Equations (1) to (3) as the paper writes them, a sample at a time; and which samples have a positive."""
    losses, valid = [], []
    for own, row in zip(zip(p.domain.tolist(), p.y.tolist(), strict=True), distances(p), strict=True):
        n_own = max(float(p.counts[own]), 1.0)

        def similarity(pair: tuple[int, int], row: dict[Any, float] = row, n_own: float = n_own) -> float:
            weight = (float(p.counts[pair]) / n_own) ** nu / n_own if balanced else 1.0
            return math.exp(-weight * row[pair] / temperature)

        denominator = sum(similarity(pair) for pair in row if pair != own)
        terms = [
            -math.log(similarity((d, own[1])) / denominator)
            for d in range(len(p.centroids))
            if d != own[0] and (d, own[1]) in row
        ]
        losses.append(sum(terms) / len(terms) if terms else 0.0)
        valid.append(bool(terms))
    return losses, valid


def rescaled_by_hand(
    p: Problem, *, nu: float = 1.0, balanced: bool = True, scale: float | None = None
) -> tuple[list[float], list[float]]:
    """The formula of `rescaled_boda_loss`, a sample at a time; and the weights of the samples in the mean."""
    table = distances(p)
    every = [value for row in table for value in row.values()]
    scale = sum(every) / len(every) if scale is None else scale
    present = [float(n) for n in p.counts.flatten() if n > 0]
    losses, weights = [], []
    for own, row in zip(zip(p.domain.tolist(), p.y.tolist(), strict=True), table, strict=True):
        reliability = {pair: float(p.counts[pair]) ** (nu if balanced else 0.0) for pair in row}
        mean_reliability = sum(reliability.values()) / len(reliability)
        positives = [pair for pair in row if pair[1] == own[1] and pair != own]
        importance = sum(present) / len(present) / max(float(p.counts[own]), 1.0) if balanced else 1.0
        if not positives:
            losses.append(0.0)
            weights.append(0.0)
            continue
        repulsion = math.log(sum(reliability[q] * math.exp(-row[q] / scale) for q in row if q != own))
        total = sum(reliability[q] for q in positives)
        attraction = sum(reliability[q] / total * row[q] / scale for q in positives)
        losses.append(importance * (repulsion + attraction - math.log(mean_reliability)))
        weights.append(importance)
    return losses, weights


def pooled_by_hand(p: Problem, domain: float = 1.0, label: float = 1.0, pair: float = 0.125) -> Problem:
    """The problem with the posterior means of all pairs as centroids, and 1 / their variances as counts.

    The posterior of the unknowns m, a_d, b_c and i_{d,c} minimises
    Σ n (M − m − a_d − b_c − i_{d,c})² + Σ a² / σ_a² + Σ b² / σ_b² + Σ i² / τ², a square whose matrix is its precision.
    """
    num_domains, num_classes, num_features = p.centroids.shape
    pairs = [(d, c) for d in range(num_domains) for c in range(num_classes)]
    prior = [0.0] + num_domains * [1 / domain] + num_classes * [1 / label] + len(pairs) * [1 / pair]
    matrix = torch.diag(torch.tensor(prior, dtype=torch.float64))
    right = torch.zeros(len(prior), num_features, dtype=torch.float64)
    parts = {
        (d, c): (0, 1 + d, 1 + num_domains + c, 1 + num_domains + num_classes + i) for i, (d, c) in enumerate(pairs)
    }
    for at in pairs:
        if p.counts[at] > 0:
            for row in parts[at]:
                right[row] += p.counts[at] * p.centroids[at]
                for column in parts[at]:
                    matrix[row, column] += p.counts[at]
    covariance = torch.linalg.inv(matrix)
    centroids, counts = torch.empty_like(p.centroids), torch.empty(num_domains, num_classes, dtype=torch.float64)
    for at in pairs:
        centroids[at] = sum((covariance @ right)[row] for row in parts[at])
        counts[at] = 1 / sum(covariance[row, column] for row in parts[at] for column in parts[at])
    return replace(p, centroids=centroids, counts=counts)


def assert_close(found: Tensor, expected: Any, rtol: float = 1e-9, atol: float = 1e-11) -> None:
    torch.testing.assert_close(found, torch.as_tensor(expected, dtype=found.dtype), rtol=rtol, atol=atol)


class TestAgainstThePaper:
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("equation", EQUATIONS)
    def test_every_equation_and_metric(self, equation: str, metric: str) -> None:
        options = EQUATIONS[equation]
        for seed in range(3):
            p = make(seed, metric=metric)
            losses, valid = printed(p, **options)
            assert all(valid)
            assert_close(p.loss(reduction="sum", **options), sum(losses))
            assert_close(p.loss(reduction="mean", **options), sum(losses) / len(losses))
            assert_close(p.loss(reduction="none", **options), losses)

    @pytest.mark.parametrize("temperature", [0.3, 7.0, 2])
    @pytest.mark.parametrize("equation", EQUATIONS)
    def test_temperature_divides_the_distances(self, equation: str, temperature: float) -> None:
        p = make(1)
        expected, _ = printed(p, temperature=temperature, **EQUATIONS[equation])
        assert_close(p.loss(temperature=temperature, reduction="none", **EQUATIONS[equation]), expected)

    @pytest.mark.parametrize("metric", METRICS)
    @given(seed=st.integers(0, 10**6), nu=st.floats(0, 1.5), absent=st.floats(0.1, 0.9))
    @settings(deadline=None, max_examples=15)
    def test_absent_pairs_are_in_neither_sum(self, metric: str, seed: int, nu: float, absent: float) -> None:
        p = make(seed, absent=absent, metric=metric)
        losses, valid = printed(p, nu=nu)
        assert_close(p.loss(nu=nu, reduction="none"), losses)
        assert_close(p.loss(nu=nu, reduction="sum"), sum(losses))
        assert_close(p.loss(nu=nu), sum(losses) / max(sum(valid), 1))

    @pytest.mark.parametrize("balanced", [True, False])
    @pytest.mark.parametrize("metric", METRICS)
    @given(seed=st.integers(0, 10**6), nu=st.floats(0, 1.5), absent=st.sampled_from([0.0, 0.4]))
    @settings(deadline=None, max_examples=10)
    def test_rescaled(self, balanced: bool, metric: str, seed: int, nu: float, absent: float) -> None:
        p = make(seed, absent=absent, metric=metric)
        options: dict[str, Any] = {"nu": nu, "balanced": balanced, "rescaled": True}
        if int(p.counts.sum()) == 0:
            assert float(p.loss(**options)) == 0
            return
        losses, weights = rescaled_by_hand(p, nu=nu, balanced=balanced)
        assert_close(p.loss(reduction="none", **options), losses)
        assert_close(p.loss(reduction="sum", **options), sum(losses))
        assert_close(p.loss(**options), sum(losses) / (sum(weights) or 1.0))

    def test_counts_of_a_thousand_to_one(self) -> None:
        p = replace(make(3, domains=2, classes=3), counts=torch.tensor([[1000, 1, 30], [1, 1000, 1000]]))
        p = replace(p, z=p.z / 100, centroids=p.centroids / 100)  # otherwise the oracle's exp is 0
        assert_close(p.loss(reduction="none"), printed(p)[0])
        assert_close(p.loss(reduction="none", rescaled=True), rescaled_by_hand(p)[0])

    @pytest.mark.parametrize("absent", [0.0, 0.4])
    def test_positives_averages_over_samples_and_positives(self, absent: float) -> None:
        p = make(4, absent=absent)
        losses, _ = printed(p)
        numbers = [
            sum(d != own and int(p.counts[d, c]) > 0 for d in range(len(p.counts)))
            for own, c in zip(p.domain.tolist(), p.y.tolist(), strict=True)
        ]
        expected = sum(n * loss for n, loss in zip(numbers, losses, strict=True)) / sum(numbers)
        assert_close(p.loss(reduction="positives"), expected)

    @pytest.mark.parametrize("nu", [0.0, 0.5, 1.0, 1.5])
    @given(seed=st.integers(0, 10**6), exponents=st.lists(st.floats(0, 6), min_size=12, max_size=12))
    @settings(deadline=None, max_examples=15)
    def test_counts_from_1_to_a_million(self, nu: float, seed: int, exponents: list[float]) -> None:
        """Value and gradient in float32 are finite and equal to float64: nothing is capped or normalised."""
        counts = torch.tensor([round(10**e) for e in exponents]).view(3, 4)
        exact = replace(make(seed), counts=counts)
        (loss, grad), (expected, expected_grad) = exact.to(torch.float32).gradient(nu=nu), exact.gradient(nu=nu)
        assert torch.isfinite(loss) and torch.isfinite(grad).all()
        size = max(1.0, float(expected_grad.abs().max()))
        torch.testing.assert_close(loss.double(), expected, rtol=1e-3, atol=1e-3 * size)
        torch.testing.assert_close(grad.double(), expected_grad, rtol=1e-2, atol=1e-2 * size)


class TestPooled:
    """Posterior means of the pairs as centroids, and the samples that these are worth as counts."""

    @pytest.mark.parametrize("equation", EQUATIONS)
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("absent", [0.0, 0.4])
    def test_every_equation_and_metric(self, absent: float, metric: str, equation: str) -> None:
        for seed in range(2):
            p = make(seed, absent=absent, metric=metric)
            losses, valid = printed(pooled_by_hand(p), **EQUATIONS[equation])
            assert all(valid)  # no pair is absent
            assert_close(p.loss(pooled=True, reduction="none", **EQUATIONS[equation]), losses)
            assert_close(p.loss(pooled=True, **EQUATIONS[equation]), sum(losses) / len(losses))

    @pytest.mark.parametrize("balanced", [True, False])
    def test_rescaled(self, balanced: bool) -> None:
        p = make(3, absent=0.4)
        losses, weights = rescaled_by_hand(pooled_by_hand(p), balanced=balanced)
        found = p.loss(pooled=True, rescaled=True, balanced=balanced, reduction="none")
        assert_close(found, losses)
        assert_close(p.loss(pooled=True, rescaled=True, balanced=balanced), sum(losses) / sum(weights))

    def test_counts_from_one_to_a_million(self) -> None:
        p = replace(make(3, domains=2, classes=3), counts=torch.tensor([[10**6, 1, 30], [1, 0, 1000]]))
        p = replace(p, z=p.z / 1000, centroids=p.centroids / 1000)  # otherwise the oracle's exp is 0
        assert_close(p.loss(pooled=True, reduction="none"), printed(pooled_by_hand(p))[0], rtol=1e-7)
        for nu in (0.0, 1.0, 1.5):
            single = replace(p, z=1000 * p.z, centroids=1000 * p.centroids).to(torch.float32)
            loss, grad = single.gradient(pooled=True, nu=nu)
            assert torch.isfinite(loss) and torch.isfinite(grad).all()

    def test_many_samples_in_every_pair_leave_little_to_pool(self) -> None:
        p = replace(make(3), counts=torch.full((3, 4), 10**9))
        options: dict[str, Any] = {"temperature": 1e-9}  # counts of 10⁹ divide the distances by as much
        assert_close(p.loss(pooled=True, **options), p.loss(**options), rtol=1e-6)

    def test_an_absent_pair_pulls_its_class_and_pushes_the_others(self) -> None:
        p = make(8, domains=2, classes=3, batch=12)
        p.counts[0, 1] = 0
        alone = (p.domain == 1) & (p.y == 1)
        assert alone.any()
        after, grad = p.gradient(pooled=True, reduction="none")
        assert (p.loss(reduction="none")[alone] == 0).all() and (after[alone] > 0).all()
        assert (grad.abs().amax(1) > 0).all()

    @pytest.mark.parametrize("rescaled", [False, True])
    def test_gradcheck_in_features_and_centroids(self, rescaled: bool) -> None:
        p = make(2, domains=2, classes=3, features=3, batch=4)
        p.counts[1, 0] = 0

        def loss(z: Tensor, centroids: Tensor) -> Tensor:
            return replace(p, z=z, centroids=centroids).loss(pooled=True, rescaled=rescaled)

        if rescaled:  # its gradient holds the mean distance fixed
            loss(p.z.requires_grad_(), p.centroids.requires_grad_()).backward()  # type: ignore[no-untyped-call]
            assert p.centroids.grad is not None
            assert torch.isfinite(p.centroids.grad).all() and (p.centroids.grad[1, 0] == 0).all()
        else:
            assert gradcheck(loss, (p.z.requires_grad_(), p.centroids.requires_grad_()))

    @pytest.mark.parametrize("rescaled", [False, True])
    def test_nothing_known_and_one_domain_alone(self, rescaled: bool) -> None:
        for p in (make(absent=1.1), make(domains=1)):
            loss, grad = p.gradient(pooled=True, rescaled=rescaled)
            assert float(loss) == 0 and grad.abs().max() == 0

    def test_the_centroid_that_is_not_finite_is_named(self) -> None:
        p = make(classes=4)
        p.centroids[1, 2, 3] = math.nan
        with pytest.raises(ValueError, match=r"centroids\[6, 3\] is NaN or infinite"):
            p.loss(pooled=True)
        p.counts[1, 2] = 0  # the centroid of no samples may be anything
        assert torch.isfinite(p.loss(pooled=True))

    def test_autocast_does_not_cost_digits(self) -> None:
        p = make(9, features=32, absent=0.2).to(torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = p.loss(pooled=True)
        torch.testing.assert_close(inside, p.loss(pooled=True), rtol=1e-6, atol=1e-6)


class TestGradients:
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("equation", EQUATIONS)
    def test_gradcheck_in_features_and_centroids(self, equation: str, metric: str) -> None:
        p = make(2, domains=2, classes=3, features=3, batch=4, metric=metric)

        def loss(z: Tensor, centroids: Tensor) -> Tensor:
            return replace(p, z=z, centroids=centroids).loss(**EQUATIONS[equation])

        inputs = p.z.requires_grad_(), p.centroids.requires_grad_()
        assert gradcheck(loss, inputs)
        if equation == "equation 3, nu 1":
            assert gradgradcheck(loss, inputs)

    @pytest.mark.parametrize("balanced", [True, False])
    @pytest.mark.parametrize("metric", METRICS)
    def test_rescaled_is_the_gradient_at_a_fixed_mean_distance(self, metric: str, balanced: bool) -> None:
        p = make(5, domains=2, classes=2, features=3, batch=4, metric=metric)
        every = [value for row in distances(p) for value in row.values()]
        scale = sum(every) / len(every)
        for name in ("z", "centroids"):
            value = getattr(p, name).clone().requires_grad_()
            (found,) = torch.autograd.grad(replace(p, **{name: value}).loss(rescaled=True, balanced=balanced), value)
            expected = torch.zeros_like(value)
            for i in range(value.numel()):
                ends = []
                for step in (1e-5, -1e-5):
                    moved = value.detach().clone()
                    moved.view(-1)[i] += step
                    losses, weights = rescaled_by_hand(replace(p, **{name: moved}), balanced=balanced, scale=scale)
                    ends.append(sum(losses) / sum(weights))
                expected.view(-1)[i] = (ends[0] - ends[1]) / 2e-5
            assert_close(found, expected, rtol=1e-6, atol=1e-8)

    def test_gradient_of_a_sample_does_not_depend_on_the_others_if_summed(self) -> None:
        p = make(4)
        _, together = p.gradient(reduction="sum")
        for i in range(len(p.z)):
            _, alone = replace(p, z=p.z[i : i + 1], y=p.y[i : i + 1], domain=p.domain[i : i + 1]).gradient(
                reduction="sum"
            )
            assert_close(alone[0], together[i])


@pytest.mark.parametrize("rescaled", [False, True])
class TestEdges:
    def test_one_domain_has_no_positive(self, rescaled: bool) -> None:
        loss, grad = make(domains=1).gradient(rescaled=rescaled)
        assert float(loss) == 0 and grad.abs().max() == 0

    def test_samples_without_a_positive_count_for_nothing(self, rescaled: bool) -> None:
        p = make(8, domains=2, classes=3, batch=12)
        p.counts[0, 1] = p.counts[1, 2] = 0  # samples of (1, 1) and (0, 2) have nobody
        alone = ((p.domain == 1) & (p.y == 1)) | ((p.domain == 0) & (p.y == 2))
        assert 0 < alone.sum() < len(alone)
        _, grad = p.gradient(rescaled=rescaled)
        assert grad[alone].abs().max() == 0
        assert (grad[~alone].abs().amax(1) > 0).all()
        assert (p.loss(rescaled=rescaled, reduction="none")[alone] == 0).all()

    @pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
    def test_empty_batch(self, rescaled: bool, reduction: Any) -> None:
        p = make(batch=0)
        loss, grad = p.gradient(rescaled=rescaled, reduction=reduction)
        assert loss.shape == ((0,) if reduction == "none" else ()) and grad.shape == p.z.shape
        assert float(loss.sum()) == 0

    def test_no_pair_present(self, rescaled: bool) -> None:
        assert make(absent=1.1).gradient(rescaled=rescaled)[1].abs().max() == 0

    def test_one_pair_present(self, rescaled: bool) -> None:
        p = make(absent=1.1, batch=24)
        p.counts[1, 2] = 4
        # Samples of its class in another domain have it as their only pair: −log 1. All others have no positive.
        losses, grad = p.gradient(rescaled=rescaled, reduction="none")
        assert_close(losses, torch.zeros(24))
        assert_close(grad, torch.zeros_like(p.z))

    def test_a_sample_of_an_absent_pair_counts_as_one(self, rescaled: bool) -> None:
        p = make(1)
        d, c = int(p.domain[0]), int(p.y[0])
        p.counts[d, c] = 0
        expected = printed(p)[0] if not rescaled else rescaled_by_hand(p)[0]
        assert expected[0] != 0
        assert_close(p.loss(rescaled=rescaled, reduction="none"), expected)

    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
    def test_features_on_a_centroid(self, rescaled: bool, metric: str, dtype: torch.dtype) -> None:
        p = make(6, metric=metric, features=7)
        p = replace(p, z=p.centroids[p.domain.roll(1), p.y.roll(2)]).to(dtype)
        loss, grad = p.gradient(rescaled=rescaled)
        assert torch.isfinite(loss) and torch.isfinite(grad).all()
        assert grad.norm(dim=1).max() < 1e3

    def test_everything_at_one_point(self, rescaled: bool) -> None:
        p = make(6)
        p = replace(p, z=torch.full_like(p.z, 3.0), centroids=torch.full_like(p.centroids, 3.0))
        loss, grad = replace(p, counts=torch.full_like(p.counts, 5)).gradient(rescaled=rescaled)
        assert_close(loss, math.log(p.counts.numel() - 1))
        assert grad.abs().max() == 0

    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("size", [1e18, 1e30, 1e-18, 1e-30, 1e36])
    def test_huge_and_tiny_features(self, rescaled: bool, size: float, metric: str) -> None:
        p = make(7, metric=metric)
        scaled = replace(p, z=p.z * size, centroids=p.centroids * size).to(torch.float32)
        loss, grad = scaled.gradient(rescaled=rescaled)
        assert torch.isfinite(loss) and torch.isfinite(grad).all()
        if rescaled:
            expected, expected_grad = p.gradient(rescaled=True)
            torch.testing.assert_close(loss.double(), expected, rtol=1e-4, atol=1e-5)
            torch.testing.assert_close(grad.double() * size, expected_grad, rtol=1e-3, atol=1e-4)

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_half_precision_features(self, rescaled: bool, dtype: torch.dtype) -> None:
        p = make(9, features=64)
        half = replace(p, z=p.z.to(dtype), centroids=p.centroids.float())
        loss, grad = half.gradient(rescaled=rescaled)
        assert loss.dtype == torch.float32 and grad.dtype == dtype
        expected, expected_grad = half.to(torch.float64).gradient(rescaled=rescaled)
        torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-6)
        torch.testing.assert_close(grad.double(), expected_grad, rtol=1e-2, atol=1e-4)

    @pytest.mark.parametrize("metric", METRICS)
    def test_autocast_does_not_cost_digits(self, rescaled: bool, metric: str) -> None:
        p = make(9, metric=metric, features=32).to(torch.float32)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            inside = p.loss(rescaled=rescaled)
        assert inside.dtype == torch.float32
        torch.testing.assert_close(inside, p.loss(rescaled=rescaled), rtol=1e-6, atol=1e-6)

    @pytest.mark.parametrize("dtype", [torch.int32, torch.int64, torch.uint8, torch.float32, torch.float64])
    def test_dtype_of_the_counts_does_not_matter(self, rescaled: bool, dtype: torch.dtype) -> None:
        p = make(10, absent=0.2)
        assert_close(replace(p, counts=p.counts.to(dtype)).loss(rescaled=rescaled), p.loss(rescaled=rescaled))

    @pytest.mark.parametrize("metric", METRICS)
    def test_statistics_of_an_absent_pair_may_be_anything(self, rescaled: bool, metric: str) -> None:
        p = make(11, absent=0.4, metric=metric)
        assert 0 < (p.counts == 0).sum() < p.counts.numel()

        def spoil(table: Tensor) -> Tensor:
            table = table.clone()
            table[p.counts == 0] = torch.nan
            return table.requires_grad_()

        spoilt = replace(p, centroids=spoil(p.centroids), precision=each_part(p.precision, spoil)).with_grad()
        loss = spoilt.loss(rescaled=rescaled)
        assert_close(loss, p.loss(rescaled=rescaled))
        grads = torch.autograd.grad(loss, [spoilt.z, spoilt.centroids])
        assert_close(grads[0], p.gradient(rescaled=rescaled)[1])
        assert (grads[1][p.counts == 0] == 0).all()

    def test_not_contiguous(self, rescaled: bool) -> None:
        p = make(12)
        strided = Problem(
            p.z.T.contiguous().T,
            torch.stack([p.y, p.y], 1)[:, 0],
            torch.stack([p.domain, p.domain], 1)[:, 1],
            p.centroids.permute(2, 1, 0).contiguous().permute(2, 1, 0),
            p.counts.T.contiguous().T,
        )
        assert not any(t.is_contiguous() for t in (strided.z, strided.y, strided.centroids, strided.counts))
        assert_close(strided.loss(rescaled=rescaled), p.loss(rescaled=rescaled))

    @pytest.mark.parametrize("metric", METRICS)
    def test_a_large_common_offset(self, rescaled: bool, metric: str) -> None:
        p = make(13, features=32, metric=metric)
        shifted = replace(p, z=p.z + 1e4, centroids=p.centroids + 1e4).to(torch.float32)
        loss, grad = shifted.gradient(rescaled=rescaled)
        expected, expected_grad = shifted.to(torch.float64).gradient(rescaled=rescaled)  # as float32 has rounded them
        torch.testing.assert_close(loss.double(), expected, rtol=1e-3, atol=0)
        torch.testing.assert_close(grad.double(), expected_grad, rtol=1e-2, atol=1e-3 * float(expected_grad.max()))

    def test_extreme_exponents_of_counts(self, rescaled: bool) -> None:
        p = replace(make(14, domains=2, classes=2), counts=torch.tensor([[1, 10**6], [10**6, 1]]))
        for nu in (0.0, 1.0, 5.0, 20.0):
            loss, grad = p.to(torch.float32).gradient(rescaled=rescaled, nu=nu)
            assert torch.isfinite(loss) and torch.isfinite(grad).all()


class TestWrongInput:
    @pytest.mark.parametrize("wrong", [math.nan, math.inf, -math.inf])
    @pytest.mark.parametrize("metric", METRICS)
    def test_the_entry_is_named(self, metric: str, wrong: float) -> None:
        p = make(metric=metric)
        p.z[4, 2] = wrong
        with pytest.raises(ValueError, match=r"z\[4, 2\] is NaN or infinite"):
            p.loss()

    def test_centroids(self) -> None:
        p = make(classes=4)
        p.centroids[1, 2, 3] = math.nan
        with pytest.raises(ValueError, match=r"centroids\[6, 3\] is NaN or infinite"):
            p.loss()

    @pytest.mark.parametrize("metric", METRICS[1:])
    def test_precision(self, metric: str) -> None:
        p = make(metric=metric)
        table = p.precision.diagonal if isinstance(p.precision, LowRankPrecision) else p.precision
        assert table is not None
        table[1, 2, 3] = math.inf
        with pytest.raises(ValueError, match=r"precision\[6, 3.* is NaN or infinite"):
            p.loss()

    @pytest.mark.parametrize("rescaled", [False, True])
    @pytest.mark.parametrize("nu", [math.nan, math.inf, None, "1"])
    def test_nu(self, nu: Any, rescaled: bool) -> None:
        with pytest.raises(ValueError, match=f"^nu is {nu!r}, expected a finite number$"):
            make().loss(nu=nu, rescaled=rescaled)
        make().loss(nu=np.float32(0.5), rescaled=rescaled)

    @pytest.mark.parametrize("rescaled", [False, True])
    @pytest.mark.parametrize("negatives", [-1, 1.5, None, "1"])
    def test_negatives(self, negatives: Any, rescaled: bool) -> None:
        with pytest.raises(ValueError, match=f"^negatives is {negatives!r}, expected the number of pairs to draw, or"):
            make().loss(negatives=negatives, rescaled=rescaled)

    @pytest.mark.parametrize("temperature", [0, -1.0, math.nan, None, "Auto"])
    def test_temperature(self, temperature: Any) -> None:
        with pytest.raises(ValueError, match=r"temperature is .*, expected a number above 0"):
            make().loss(temperature=temperature)

    def test_the_rescaled_loss_has_no_temperature(self) -> None:
        with pytest.raises(ValueError, match="temperature is 2"):
            BoDALoss(3, 4, 5, make().counts, temperature=2, rescaled=True)

    def test_reduction_and_shape_of_the_counts(self) -> None:
        with pytest.raises(ValueError, match=r"'total'.* mean, positives, sum, none"):
            make().loss(reduction="total")
        with pytest.raises(ValueError, match=r"counts .*\(4, 3\).*\(3, 4\)"):
            replace(make(), counts=make().counts.T).loss()


class TestValidation:
    @pytest.mark.parametrize("name", ["y", "domain"])
    @pytest.mark.parametrize("wrong", [-1, 9])
    def test_labels_out_of_range(self, name: str, wrong: int) -> None:
        p = make()
        getattr(p, name)[2] = wrong
        with pytest.raises(ValueError, match=f"{name} .*{wrong}"):
            p.loss()
        with pytest.raises(ValueError, match=f"{name} .*{wrong}"):
            BoDALoss(3, 4, 5, p.counts).eval()(p.z, p.y, p.domain)

    @pytest.mark.parametrize("wrong", [-3.0, math.nan, math.inf])
    def test_counts(self, wrong: float) -> None:
        p = make()
        counts = p.counts.double()
        counts[1, 1] = wrong
        with pytest.raises(ValueError, match="counts"):
            replace(p, counts=counts).loss()

    @pytest.mark.parametrize("validate", [True, False])
    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("y", lambda y: y[:1]),
            ("y", lambda y: y[:, None]),
            ("y", lambda y: y.double()),
            ("y", lambda y: y > 0),
            ("domain", lambda domain: domain[:-1]),
            ("z", lambda z: z[0]),
            ("z", lambda z: z[:, 1:]),
            ("z", lambda z: z.long()),
            ("centroids", lambda centroids: centroids.flatten(0, 1)),
            ("centroids", lambda centroids: centroids.long()),
            ("counts", lambda counts: counts > 0),
            ("counts", lambda counts: counts[:1]),
            ("precision", lambda precision: precision[..., 1:]),
        ],
    )
    def test_shapes_and_dtypes_are_always_checked(self, name: str, change: Any, validate: bool) -> None:
        p = make(metric="diagonal")
        with pytest.raises(ValueError, match=f"^{name} is "):
            replace(p, **{name: change(getattr(p, name))}).loss(validate=validate)

    @pytest.mark.parametrize("name", ["z", "y", "domain", "centroids", "counts"])
    def test_arrays_of_numpy_are_named(self, name: str) -> None:
        p = make()
        with pytest.raises(ValueError, match=f"^{name} is a ndarray"):
            replace(p, **{name: getattr(p, name).numpy()}).loss()

    def test_one_hot_labels_are_named(self) -> None:
        p = make()
        with pytest.raises(ValueError, match=r"^y is "):
            replace(p, y=nn.functional.one_hot(p.y, 4)).loss()

    @pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32])
    def test_labels_of_any_integer_dtype(self, dtype: torch.dtype) -> None:
        p = make()
        assert torch.equal(replace(p, y=p.y.to(dtype), domain=p.domain.to(dtype)).loss(), p.loss())

    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("rescaled", [False, True])
    def test_without_it_the_loss_is_the_same(self, metric: str, rescaled: bool) -> None:
        p = make(3, absent=0.2, metric=metric)
        one, other = (p.gradient(rescaled=rescaled, validate=validate) for validate in (True, False))
        assert all(map(torch.equal, one, other))

    def test_without_it_a_number_that_is_not_finite_gives_nan(self) -> None:
        p = make()
        p.z[4, 2] = math.inf
        assert p.loss(validate=False).isnan()


class Reads(TorchDispatchMode):
    """Counts the operations that would make the host wait for a device."""

    names = ("_local_scalar_dense", "nonzero", "unique", "masked_select", "is_nonzero", "item", "equal", "bincount")
    names += ("linalg_check_errors",)

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        masks = name == "index" and any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1])
        if masks or any(word in name for word in self.names):
            self.found.append(name)
        return func(*args, **(kwargs or {}))


class TestWithoutReads:
    """With `validate=False`, no value is read back from the device."""

    @pytest.mark.parametrize("options", [{}, {"balanced": False}, {"pooled": True}, {"negatives": 5}])
    @pytest.mark.parametrize("rescaled", [False, True])
    @pytest.mark.parametrize("metric", METRICS)
    @pytest.mark.parametrize("device", ["cpu", "meta"])  # on meta every read is an error
    def test_the_function(self, device: str, metric: str, rescaled: bool, options: dict[str, Any]) -> None:
        p = make(3, absent=0.2, metric=metric)
        precision = each_part(p.precision, lambda part: part.to(device))
        z, *rest = (value.to(device) for value in (p.z, p.y, p.domain, p.centroids, p.counts))
        z.requires_grad_()
        with Reads() as reads:
            function = rescaled_boda_loss if rescaled else boda_loss
            loss = function(z, *rest, precision=precision, validate=False, **options)
            loss.backward()  # type: ignore[no-untyped-call]
        assert reads.found == []

    @pytest.mark.parametrize("pooled", [False, True])
    @pytest.mark.parametrize("covariance", ["none", "diagonal"])
    @pytest.mark.parametrize("device", ["cpu", "meta"])
    def test_the_module_with_its_statistics(self, device: str, covariance: Any, pooled: bool) -> None:
        p = make(3, absent=0.2)
        criterion = BoDALoss(3, 4, 5, p.counts, covariance=covariance, pooled=pooled, validate=False).to(device)
        z, y, domain = (value.to(device) for value in (p.z.float(), p.y, p.domain))
        z.requires_grad_()
        with Reads() as reads:
            criterion(z, y, domain).backward()
        assert reads.found == []

    def test_reads_are_found_if_there_are_any(self) -> None:
        with Reads() as reads:
            make().loss(validate=True)
        assert reads.found


@pytest.fixture
def as_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors on the CPU are treated as on an accelerator, whose values cannot be looked at."""
    for module in (contrast, distances_module, negatives, statistics):
        monkeypatch.setattr(module, "on_host", lambda values: False)


OPTIONS = [{}, {"rescaled": True}, {"balanced": False}, {"reduction": "none"}, {"pooled": True}, {"negatives": 5}]


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("absent", [0.0, 0.4, 1.1])
@pytest.mark.parametrize("options", OPTIONS)
def test_a_device_gives_the_same_loss_and_gradient(
    options: dict[str, Any], absent: float, metric: str, request: pytest.FixtureRequest
) -> None:
    found = []
    for _ in range(2):
        p = make(5, absent=absent, metric=metric)
        p.centroids[p.counts == 0] = math.nan
        torch.manual_seed(0)  # of the sampled negatives
        found.append(p.gradient(**options))
        request.getfixturevalue("as_on_a_device")
    torch.testing.assert_close(*found, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("covariance", ["none", "diagonal"])
def test_a_device_keeps_the_same_statistics(covariance: Any, request: pytest.FixtureRequest) -> None:
    states = []
    for _ in range(2):
        criterion = BoDALoss(3, 4, 5, make(1).counts, covariance=covariance)
        for seed in range(4):
            p = make(seed, batch=seed * 3).to(torch.float32)
            criterion(p.z, p.y, p.domain)
        states.append(criterion.state_dict())
        request.getfixturevalue("as_on_a_device")
    assert all(torch.equal(states[0][name], states[1][name]) for name in states[0])


@pytest.mark.parametrize("size", [1e-18, 1.0, 1e18])
def test_a_device_keeps_digits_and_range(size: float, as_on_a_device: None) -> None:
    torch.manual_seed(0)
    z = torch.randn(6, 16).double()
    centroids = torch.cat([z[:3] * (1 + 1e-4), torch.randn(3, 16).double()]) + 5
    z, centroids = (size * (z + 5)).float(), (size * centroids).float()
    expected = (z.double()[:, None] - centroids.double()).norm(dim=2)
    torch.testing.assert_close(pair_distances(z, centroids).double(), expected, rtol=1e-6, atol=0)


def rare_and_frequent(*, with_rare: bool) -> Problem:
    """Two domains that are far apart, three classes, 1,000 samples of every pair but (1, 0), which has one."""
    torch.manual_seed(0)
    centroids = 3 * torch.randn(1, 3, 16) + 6 * torch.randn(2, 1, 16)
    y, domain = torch.arange(32) % 3, torch.arange(32) // 16
    y[(domain == 1) & (y == 0)] = 1
    if with_rare:
        y[-1] = 0
    counts = torch.full((2, 3), 1000)
    counts[1, 0] = 1
    return Problem(centroids[domain, y] + torch.randn(32, 16), y, domain, centroids, counts)


def gradient_norms(p: Problem, **options: Any) -> Tensor:
    return p.gradient(**options)[1].norm(dim=1)


class TestExtremeCounts:
    @pytest.mark.parametrize("with_rare", [True, False])
    def test_rescaled_bounds_every_gradient(self, with_rare: bool) -> None:
        p = rare_and_frequent(with_rare=with_rare)
        mean_distance = float(torch.cdist(p.z, p.centroids.flatten(0, 1)).mean())
        importance = 1 / p.counts[p.domain, p.y]
        bound = 2 * importance / importance.sum() / mean_distance
        norms = gradient_norms(p, rescaled=True)
        assert (norms <= bound * 1.0001).all()
        assert norms.sum() <= 2 / mean_distance * 1.0001
        even = replace(p, counts=torch.full_like(p.counts, 1000))
        assert 0.2 < norms.sum() / gradient_norms(even, rescaled=True).sum() < 5

    def test_rescaled_against_the_printed_form(self) -> None:
        p = rare_and_frequent(with_rare=True)
        printed_norms = gradient_norms(p, reduction="sum")
        # As printed, the one rare sample outweighs all others by more than N′ / N.
        assert printed_norms[-1] > 1000 * printed_norms[:-1].sum()
        # Rescaled, its share of the step is at most its whole pair's, whose only sample it is.
        summed = gradient_norms(p, reduction="sum", rescaled=True)
        assert 100 < summed[-1] / summed[:-1].mean() < 10_000
        step = gradient_norms(p, rescaled=True).sum()
        without = gradient_norms(rare_and_frequent(with_rare=False), rescaled=True).sum()
        assert 0.2 < step / without < 5
        # The same sums of the printed form are the wider apart.
        without = gradient_norms(rare_and_frequent(with_rare=False)).sum()
        assert gradient_norms(p).sum() / without > 1000

    @given(
        seed=st.integers(0, 10**6),
        largest=st.sampled_from([1, 10, 1000, 10**6]),
        nu=st.floats(0, 1.5),
        scale=st.floats(-3, 3),
    )
    @settings(deadline=None, max_examples=40)
    def test_the_bound_holds_for_any_counts(self, seed: int, largest: int, nu: float, scale: float) -> None:
        p = make(seed, largest=largest, absent=0.2, domains=2)
        p = replace(p, z=p.z * 10**scale, centroids=p.centroids * 10**scale)
        if int(p.counts.sum()) == 0:
            return
        _, weights = rescaled_by_hand(p, nu=nu)
        every = [value for row in distances(p) for value in row.values()]
        share = torch.tensor(weights, dtype=torch.float64) / (sum(weights) or 1.0)
        bound = 2 * share / (sum(every) / len(every))
        assert (gradient_norms(p, rescaled=True, nu=nu) <= bound * (1 + 1e-9) + 1e-12).all()

    def test_training_from_scratch_with_the_rescaled_loss_is_not_worse_than_without(self) -> None:
        """Two domains with opposite tails, 1,000 samples of a pair or one, batches as they come."""
        without = [train_a_small_network(seed, weight=0.0) for seed in range(4)]
        with_term = [train_a_small_network(seed, weight=1.0) for seed in range(4)]
        assert sum(with_term) / 4 > sum(without) / 4 - 0.01
        assert min(with_term) > min(without) - 0.05


def train_a_small_network(seed: int, weight: float) -> float:
    """The accuracy on balanced test data after 150 steps."""
    torch.manual_seed(seed)
    class_means, domain_means = 1.2 * torch.randn(1, 4, 12), 0.8 * torch.randn(2, 1, 12)
    counts = torch.tensor([[1000, 1000, 1, 1], [1, 1, 1000, 1000]])

    def draw(numbers: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        pair = torch.arange(8).repeat_interleave(numbers.flatten())
        domain, y = pair // 4, pair % 4
        return (class_means + domain_means)[domain, y] + torch.randn(len(pair), 12), y, domain

    x, y, domain = draw(counts)
    test_x, test_y, _ = draw(torch.full_like(counts, 100))
    encoder = nn.Sequential(nn.Linear(12, 32), nn.ReLU(), nn.Linear(32, 16))
    head = nn.Linear(16, 4)
    criterion = BoDALoss(2, 4, 16, counts, rescaled=True)
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=3e-3)
    rows = [(domain == d).nonzero().flatten() for d in range(2)]
    for _ in range(150):
        batch = torch.cat([r[torch.randint(len(r), (32,))] for r in rows])
        z = encoder(x[batch])
        loss = nn.functional.cross_entropy(head(z), y[batch]) + weight * criterion(z, y[batch], domain[batch])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        return float((head(encoder(test_x)).argmax(1) == test_y).double().mean())


class TestWhereTheSoftmaxIsFlat:
    """The docstring's comparison of the rescaled loss and equation (3), for one sample amid centroids on a sphere."""

    @staticmethod
    def around(counts: Tensor) -> tuple[Problem, Tensor, Tensor, Tensor]:
        """A problem, the unit vectors from the pairs to the sample, and who are positives and others."""
        torch.manual_seed(1)
        num_domains, num_classes = counts.shape
        centroids = nn.functional.normalize(torch.randn(num_domains, num_classes, 6, dtype=torch.float64), dim=2)
        zero = torch.tensor([0])
        p = Problem(torch.zeros(1, 6, dtype=torch.float64), zero, zero, centroids, counts)
        other = torch.ones(counts.shape, dtype=torch.bool)
        other[0, 0] = False
        positive = other & (torch.arange(num_classes) == 0)
        return p, -centroids, positive, other

    @given(counts=st.lists(st.integers(1, 1000), min_size=9, max_size=9), nu=st.floats(0, 1.5))
    @settings(deadline=None, max_examples=30)
    def test_pull_and_push_have_the_same_directions(self, counts: list[int], nu: float) -> None:
        table = torch.tensor(counts).view(3, 3)
        p, unit, positive, other = self.around(table)
        power = table.double() ** nu
        pull = (power[..., None] * unit)[positive].sum(0)
        push = (power[..., None] * unit)[other].sum(0)
        rescaled = pull / power[positive].sum() - push / power[other].sum()
        _, found = p.gradient(nu=nu, rescaled=True)  # all distances are 1
        assert_close(found[0], rescaled, atol=1e-9)
        # Equation (3) at a temperature at which nothing is left of the distances in the softmax.
        temperature = 1e9 * float((power / power[0, 0]).max())
        _, found = p.gradient(nu=nu, temperature=temperature)
        equation_3 = pull / positive.sum() - push / other.sum()
        assert_close(
            found[0] * temperature * power[0, 0] * table[0, 0], equation_3, rtol=1e-6, atol=1e-6 * float(power.max())
        )

    def test_whole_gradients_are_parallel_if_the_positives_have_the_mean_count_of_the_others(self) -> None:
        for counts, low, high in (
            ([[700, 20, 1], [10, 39, 25], [30, 5, 30]], 1 - 1e-9, 1 + 1e-9),  # 20 on average, both ways
            ([[700, 1, 1], [500, 1, 1], [3, 1, 1]], 0.5, 0.999),  # pull and push have other strengths
        ):
            p, _, _, _ = self.around(torch.tensor(counts))
            rescaled, equation_3 = (p.gradient(**how)[1] for how in ({"rescaled": True}, {"temperature": 1e6}))
            units = (nn.functional.normalize(grad, eps=0) for grad in (rescaled, equation_3))
            assert low < float(torch.linalg.vecdot(*units).sum()) < high


@st.composite
def problems(draw: st.DrawFn) -> Problem:
    return make(
        draw(st.integers(0, 10**6)),
        domains=draw(st.integers(1, 4)),
        classes=draw(st.integers(1, 4)),
        batch=draw(st.integers(1, 8)),
        absent=draw(st.sampled_from([0.0, 0.3])),
        largest=draw(st.sampled_from([3, 100])),
        metric=draw(st.sampled_from(METRICS)),
    )


@pytest.mark.parametrize("rescaled", [False, True])
class TestProperties:
    @given(p=problems(), seed=st.integers(0, 99))
    @settings(deadline=None, max_examples=25)
    def test_order_of_the_batch(self, rescaled: bool, p: Problem, seed: int) -> None:
        order = torch.randperm(len(p.z), generator=torch.Generator().manual_seed(seed))
        shuffled = replace(p, z=p.z[order], y=p.y[order], domain=p.domain[order])
        options = {"rescaled": rescaled}
        assert_close(shuffled.loss(**options), p.loss(**options))
        assert_close(shuffled.loss(reduction="none", **options), p.loss(reduction="none", **options)[order])

    @pytest.mark.parametrize(("dim", "label"), [(0, "domain"), (1, "y")])
    @given(p=problems(), seed=st.integers(0, 99))
    @settings(deadline=None, max_examples=25)
    def test_names_of_domains_and_classes(self, dim: int, label: str, rescaled: bool, p: Problem, seed: int) -> None:
        order = torch.randperm(p.centroids.shape[dim], generator=torch.Generator().manual_seed(seed))
        renamed = p.per_pair(lambda table: table.index_select(dim, order))
        renamed = replace(renamed, **{label: order.argsort()[getattr(p, label)]})
        assert_close(renamed.loss(rescaled=rescaled), p.loss(rescaled=rescaled))

    @given(p=problems(), dim=st.sampled_from([0, 1]), first=st.booleans())
    @settings(deadline=None, max_examples=25)
    def test_an_absent_domain_or_class(self, rescaled: bool, p: Problem, dim: int, first: bool) -> None:
        def extend(table: Tensor) -> Tensor:
            extra = torch.full_like(table.narrow(dim, 0, 1), 0 if table is p.counts else torch.nan)
            return torch.cat([extra, table] if first else [table, extra], dim)

        extended = p.per_pair(extend)
        if first:
            label = "domain" if dim == 0 else "y"
            extended = replace(extended, **{label: getattr(p, label) + 1})
        assert_close(extended.loss(rescaled=rescaled), p.loss(rescaled=rescaled))

    @given(p=problems(), factor=st.integers(1, 10**6))
    @settings(deadline=None, max_examples=25)
    def test_scale_of_the_counts(self, rescaled: bool, p: Problem, factor: int) -> None:
        present = p.counts[p.domain, p.y] > 0  # an absent pair's samples count as one whatever the others
        p = replace(p, z=p.z[present], y=p.y[present], domain=p.domain[present])
        scaled = replace(p, counts=p.counts * factor)
        if rescaled:
            assert_close(scaled.loss(rescaled=True), p.loss(rescaled=True))
        else:  # equation (3) has 1 / N in its exponent, as a temperature
            assert_close(scaled.loss(temperature=1.0), p.loss(temperature=float(factor)), rtol=1e-6)

    @given(p=problems(), exponent=st.floats(-12, 12))
    @settings(deadline=None, max_examples=25)
    def test_scale_of_the_features(self, rescaled: bool, p: Problem, exponent: float) -> None:
        factor = 10**exponent
        scaled = replace(p, z=p.z * factor, centroids=p.centroids * factor)
        expected = p.loss(rescaled=rescaled)
        options: dict[str, Any] = {"rescaled": True} if rescaled else {"temperature": factor}
        assert_close(scaled.loss(**options), expected, rtol=1e-6)


class TestMemory:
    shape = {"batch": 64, "domains": 4, "classes": 30, "features": 128}

    @pytest.mark.parametrize("rescaled", [False, True])
    @pytest.mark.parametrize("covariance", ["none", "diagonal", "low_rank"])
    def test_no_tensor_of_samples_by_pairs_by_features(self, covariance: Any, rescaled: bool) -> None:
        p = make(**self.shape).to(torch.float32).with_grad()
        rank, pairs = 4, 120
        statistics = PairStatistics(4, 30, 128, covariance, rank=rank)
        with LargestTensor() as seen:
            statistics.update(p.z, p.y, p.domain)
            if covariance != "none":
                p = replace(p, precision=statistics.precision())
        assert seen.numel < 64 * pairs * 128 / 4
        with LargestTensor() as seen:
            p.loss(rescaled=rescaled).backward()  # type: ignore[no-untyped-call]
        if covariance == "low_rank":
            assert seen.numel <= max(64 * pairs * rank, pairs * 128 * rank)
        else:
            assert seen.numel <= max(64 * pairs, pairs * 128, 64 * 128)

    def test_recomputed_distances_are_not_kept_for_the_backward_pass(self) -> None:
        # Two domains so far apart that every distance within one of them is lost in the expanded square.
        p = make(batch=64, domains=2, classes=60, features=128)
        centroids = p.centroids + 1e4 * torch.tensor([0.0, 1.0], dtype=torch.float64)[:, None, None]
        p = replace(p, z=p.z + 1e4 * p.domain[:, None], centroids=centroids).to(torch.float32).with_grad()
        kept = 0

        def pack(value: Tensor) -> Tensor:
            nonlocal kept
            kept += value.numel()
            return value

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda value: value):
            loss = p.loss(rescaled=True)
        assert kept < 64 * 120 * 128 / 4
        expected, expected_grad = p.to(torch.float64).gradient(rescaled=True)
        torch.testing.assert_close(loss.double(), expected, rtol=1e-5, atol=1e-6)
        (grad,) = torch.autograd.grad(loss, p.z)
        torch.testing.assert_close(
            grad.double(), expected_grad, rtol=1e-3, atol=1e-4 * float(expected_grad.abs().max())
        )


class TestModule:
    counts = torch.tensor([[100, 5, 1], [3, 80, 2]])

    def batch(self, seed: int = 0, size: int = 12) -> tuple[Tensor, Tensor, Tensor]:
        generator = torch.Generator().manual_seed(seed)
        return (
            torch.randn(size, 4, generator=generator),
            torch.randint(3, (size,), generator=generator),
            torch.randint(2, (size,), generator=generator),
        )

    @pytest.mark.parametrize("covariance", ["none", "diagonal", "low_rank", "full"])
    @pytest.mark.parametrize("rescaled", [False, True])
    @pytest.mark.parametrize("pooled", [False, True])
    def test_is_the_function_with_its_statistics(self, pooled: bool, covariance: Any, rescaled: bool) -> None:
        criterion = BoDALoss(2, 3, 4, self.counts, nu=0.7, rescaled=rescaled, covariance=covariance, pooled=pooled)
        for seed in range(3):
            z, y, domain = self.batch(seed)
            found = criterion(z, y, domain)
            kept = criterion.statistics
            expected = (rescaled_boda_loss if rescaled else boda_loss)(
                z,
                y,
                domain,
                kept.mean,
                self.counts * (kept.counts > 0),
                nu=0.7,
                pooled=pooled,
                precision=None if covariance == "none" else kept.precision(),
            )
            assert torch.equal(found, expected)

    def test_learns_statistics_in_training_mode_only(self) -> None:
        criterion = BoDALoss(2, 3, 4, self.counts)
        criterion(*self.batch(0))
        before = copy.deepcopy(criterion.state_dict())
        criterion.eval()
        criterion(*self.batch(1))
        assert all(torch.equal(value, before[name]) for name, value in criterion.state_dict().items())
        criterion.train()
        criterion(*self.batch(1))
        assert not torch.equal(criterion.statistics.mean, before["statistics.mean"])

    def test_statistics_take_no_part_in_the_gradient(self) -> None:
        criterion = BoDALoss(2, 3, 4, self.counts, covariance="diagonal")
        z, y, domain = self.batch()
        z.requires_grad_()
        criterion(z, y, domain).backward()
        assert not any(value.requires_grad for value in criterion.state_dict().values())
        assert list(criterion.parameters()) == []
        assert z.grad is not None

    def test_a_pair_with_one_sample_has_its_last_feature_as_centroid(self) -> None:
        criterion = BoDALoss(2, 3, 4, self.counts)
        for seed in range(5):
            z, y, domain = torch.randn(1, 4, generator=torch.Generator().manual_seed(seed)), [2], [0]
            criterion(z, torch.tensor(y), torch.tensor(domain))
            assert_close(criterion.statistics.mean[0, 2], z[0], rtol=1e-6, atol=1e-7)

    def test_the_window_limits_the_past(self) -> None:
        criterion = BoDALoss(2, 3, 1, self.counts, window=10)
        expected = 0.0
        for i in range(40):
            z = torch.tensor([[float(i % 7)]])
            criterion(z, torch.tensor([0]), torch.tensor([0]))  # the pair has 100 samples, of which 10 count
            past = min(i, 9)
            expected = (past * expected + float(z)) / (past + 1)
        assert_close(criterion.statistics.mean[0, 0], [expected], rtol=1e-5, atol=1e-6)

    def test_a_rare_pair_that_is_met_often_keeps_a_covariance_of_one_sample(self) -> None:
        criterion = BoDALoss(2, 3, 4, self.counts, covariance="diagonal")
        for seed in range(200):
            z, y, domain = self.batch(seed)
            criterion(z, y, domain)
            criterion(z[:1], torch.tensor([2]), torch.tensor([0]))  # this pair has one sample in training
        precision = criterion.statistics.precision()
        assert isinstance(precision, Tensor)
        frequent = precision[0, 0]
        assert (precision[0, 2] < 3 * frequent).all()  # and not a hundred times as much, as if it never varied

    @pytest.mark.parametrize("covariance", ["none", "diagonal", "low_rank", "full"])
    def test_restored_state_goes_on_alike(self, covariance: Any) -> None:
        original = BoDALoss(2, 3, 4, self.counts, covariance=covariance)
        for seed in range(4):
            original(*self.batch(seed))
        restored = BoDALoss(2, 3, 4, self.counts, covariance=covariance)
        restored.load_state_dict(original.state_dict())
        for seed in range(4, 8):
            assert torch.equal(original(*self.batch(seed)), restored(*self.batch(seed)))

    @pytest.mark.parametrize("window", [0, -1])
    def test_a_window_without_a_sample_is_refused(self, window: int) -> None:
        BoDALoss(2, 3, 1, self.counts, window=1)
        with pytest.raises(ValueError, match=f"window is {window}, expected 1 or more, or None"):
            BoDALoss(2, 3, 4, self.counts, window=window)

    @pytest.mark.parametrize("pooled", [False, True])
    def test_without_a_window_nothing_changes_by_itself(self, pooled: bool) -> None:
        criterion = BoDALoss(2, 3, 4, self.counts, window=None, pooled=pooled)
        z, y, domain = self.batch()
        assert float(criterion(z, y, domain)) == 0  # no centroid is known yet
        assert int(criterion.statistics.counts.sum()) == 0
        fresh = PairStatistics(2, 3, 4)
        fresh.update(z, y, domain)
        criterion.statistics.blend(fresh, 0.2)
        before = criterion.statistics.mean.clone()
        assert float(criterion(z, y, domain)) != 0
        assert torch.equal(criterion.statistics.mean, before)

    def test_a_pair_that_was_not_met_yet_is_absent(self) -> None:
        criterion = BoDALoss(2, 3, 4, self.counts)
        z = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
        loss = criterion(z, torch.tensor([0, 0, 1]), torch.tensor([0, 1, 0]))
        counts = torch.tensor([[100, 5, 0], [3, 0, 0]])
        expected = boda_loss(z, torch.tensor([0, 0, 1]), torch.tensor([0, 1, 0]), criterion.statistics.mean, counts)
        assert torch.equal(loss, expected)

    def test_a_wrong_batch_leaves_the_statistics_alone(self) -> None:
        criterion = BoDALoss(2, 3, 4, self.counts)
        z, y, domain = self.batch()
        criterion(z, y, domain)
        before = copy.deepcopy(criterion.state_dict())
        z[3, 1] = torch.nan
        with pytest.raises(ValueError, match=r"z\[3, 1\] is NaN or infinite"):
            criterion(z, y, domain)
        assert all(torch.equal(value, before[name]) for name, value in criterion.state_dict().items())

    def test_counts_as_an_array_and_of_a_wrong_shape(self) -> None:
        assert torch.equal(BoDALoss(2, 3, 4, self.counts.numpy()).counts, self.counts)
        with pytest.raises(ValueError, match=r"counts is \(3, 2\), expected \(2, 3\)"):
            BoDALoss(2, 3, 4, self.counts.T)

    def test_moves_and_trains_inside_autocast(self) -> None:
        for covariance in ("none", "diagonal", "low_rank", "full"):
            losses = []
            for enabled in (False, True):
                criterion = BoDALoss(2, 3, 4, self.counts, covariance=covariance)  # type: ignore[arg-type]
                with torch.autocast("cpu", dtype=torch.bfloat16, enabled=enabled):
                    losses.append([criterion(*self.batch(seed)) for seed in range(3)][-1])
            torch.testing.assert_close(*losses, rtol=1e-5, atol=1e-6)
