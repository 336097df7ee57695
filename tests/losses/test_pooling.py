"""Partial pooling: the posterior of every pair's mean against the dense formula, and its properties."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.losses.largest_tensor import LargestTensor
from torch import Tensor
from torch.autograd import gradcheck

from crosstail.losses import pooled_means

VARIANCES = {"domain": 0.7, "label": 2.0, "pair": 0.3}


def problem(seed: int, domains: int, classes: int, *, features: int = 3, absent: float = 0.3) -> tuple[Tensor, Tensor]:
    """Means (D, C, F) and counts (D, C), at least one of them above 0; the mean of an absent pair is NaN."""
    g = torch.Generator().manual_seed(seed)
    mean = 3 * torch.randn(domains, classes, features, generator=g, dtype=torch.float64)
    counts = torch.randint(1, 60, (domains, classes), generator=g)
    counts[torch.rand(domains, classes, generator=g) < absent] = 0
    counts[seed % domains, seed % classes] = 5
    mean[counts == 0] = math.nan
    return mean, counts


def dense(
    mean: Tensor, counts: Tensor, domain: float = 1.0, label: float = 1.0, pair: float = 0.125, shared: float = 0.0
) -> tuple[Tensor, Tensor]:
    """Mean K V⁻¹ M and variance diag(K − K V⁻¹ K) with V = K + diag(1/n) over the present pairs; K by loops.

    Unless m has a variance (`shared`), it is flat: estimated by generalised least squares, whose error adds to the
    variance.
    """
    pairs = [(d, c) for d in range(len(counts)) for c in range(counts.shape[1])]
    k = torch.empty(len(pairs), len(pairs), dtype=torch.float64)
    for i, (d, c) in enumerate(pairs):
        for j, (e, b) in enumerate(pairs):
            k[i, j] = shared + domain * (d == e) + label * (c == b) + pair * (d == e and c == b)
    present = [i for i, at in enumerate(pairs) if counts[at] > 0]
    noise = torch.diag(torch.tensor([1 / int(counts[pairs[i]]) for i in present], dtype=torch.float64))
    precision = torch.linalg.inv(k[present][:, present] + noise)
    seen, h = mean.flatten(0, 1)[present], k[:, present] @ precision
    m, variance = torch.zeros_like(seen[0]), (k - h @ k[present]).diagonal()
    if shared == 0:
        m = (precision @ seen).sum(0) / precision.sum()
        variance = variance + (1 - h.sum(1)) ** 2 / precision.sum()
    return (m + h @ (seen - m)).view_as(mean), variance.view(counts.shape)


def close(found: tuple[Tensor, Tensor], expected: tuple[Tensor, Tensor], **tolerance: float) -> None:
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, **(tolerance or {"rtol": 1e-9, "atol": 1e-9}))


SHAPES = [(1, 1), (1, 5), (5, 1), (2, 2), (3, 4), (4, 3), (2, 7)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@given(seed=st.integers(0, 10**6), absent=st.sampled_from([0.0, 0.3, 0.8]))
@settings(deadline=None, max_examples=10)
def test_it_is_the_posterior_of_the_dense_formula(shape: tuple[int, int], seed: int, absent: float) -> None:
    mean, counts = problem(seed, *shape, absent=absent)
    close(pooled_means(mean, counts, **VARIANCES), dense(mean, counts, **VARIANCES))
    close(pooled_means(mean, counts), dense(mean, counts))


def test_a_flat_prior_is_the_limit_of_a_wide_one() -> None:
    mean, counts = problem(3, 3, 4)
    close(pooled_means(mean, counts), dense(mean, counts, shared=1e5), rtol=1e-4, atol=1e-4)


problems = st.builds(problem, st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5))


class TestProperties:
    @given(given=problems, seed=st.integers(0, 99))
    @settings(deadline=None, max_examples=25)
    def test_names_of_domains_and_classes_do_not_matter(self, given: tuple[Tensor, Tensor], seed: int) -> None:
        mean, counts = given
        g = torch.Generator().manual_seed(seed)
        d, c = torch.randperm(len(counts), generator=g), torch.randperm(counts.shape[1], generator=g)
        pooled, variance = pooled_means(mean, counts, **VARIANCES)
        close(pooled_means(mean[d][:, c], counts[d][:, c], **VARIANCES), (pooled[d][:, c], variance[d][:, c]))

    @given(given=problems)
    @settings(deadline=None, max_examples=25)
    def test_domains_and_classes_may_swap_places(self, given: tuple[Tensor, Tensor]) -> None:
        mean, counts = given
        pooled, variance = pooled_means(mean.transpose(0, 1), counts.T, domain=2.0, label=0.7, pair=0.3)
        close((pooled.transpose(0, 1), variance.T), pooled_means(mean, counts, **VARIANCES))

    @given(given=problems, offset=st.floats(-100, 100), scale=st.floats(0.01, 100))
    @settings(deadline=None, max_examples=25)
    def test_the_answer_moves_and_scales_with_the_means(
        self, given: tuple[Tensor, Tensor], offset: float, scale: float
    ) -> None:
        mean, counts = given
        pooled, variance = pooled_means(mean, counts)
        close(pooled_means(scale * mean + offset, counts), (scale * pooled + offset, variance), rtol=1e-8, atol=1e-8)

    @given(given=problems)
    @settings(deadline=None, max_examples=25)
    def test_other_pairs_are_worth_at_most_1_over_tau_squared_samples(self, given: tuple[Tensor, Tensor]) -> None:
        """Were m, a and b known, the precision of a pair would come from its samples and i."""
        mean, counts = given
        worth = 1 / pooled_means(mean, counts, **VARIANCES)[1] - counts
        assert (worth > -1e-9).all() and (worth < 1 / VARIANCES["pair"]).all()

    @given(given=problems)
    @settings(deadline=None, max_examples=25)
    def test_more_samples_leave_no_pair_less_certain(self, given: tuple[Tensor, Tensor]) -> None:
        mean, counts = given
        assert (pooled_means(mean, 3 * counts)[1] <= pooled_means(mean, counts)[1] * (1 + 1e-12)).all()


def test_a_pair_with_very_many_samples_keeps_its_mean() -> None:
    mean, counts = problem(0, 3, 4)
    counts[1, 2], mean[1, 2] = 10**9, 50.0
    pooled, variance = pooled_means(mean, counts)
    torch.testing.assert_close(pooled[1, 2], mean[1, 2], rtol=1e-6, atol=0)
    assert float(variance[1, 2]) == pytest.approx(1e-9, rel=1e-6)


def test_a_pair_without_samples_has_the_additive_prediction() -> None:
    m, a, b = torch.tensor([10.0]), torch.tensor([1.0, 5.0, 0.0]), torch.tensor([0.0, 2.0, -3.0, 1.0])
    mean = (m + a[:, None] + b)[..., None].double()
    counts = torch.full((3, 4), 10**6)
    counts[0, 1] = counts[2, 3] = 0
    expected = mean.clone()
    mean[counts == 0] = math.nan
    pooled, variance = pooled_means(mean, counts, domain=1e4, label=1e4, pair=1e-4)
    torch.testing.assert_close(pooled, expected, rtol=0, atol=1e-3)
    assert (variance[counts == 0] > variance[counts > 0].max()).all()


def test_one_domain_shrinks_its_classes_towards_their_mean() -> None:
    """With one domain, m and a are one flat constant: b + i ~ N(0, σ_b² + τ²), and n is the same for all."""
    mean = torch.tensor([[[0.0], [4.0], [5.0]]], dtype=torch.float64)
    for n in (1, 10, 1000):
        pooled, _ = pooled_means(mean, torch.full((1, 3), n), label=0.4, pair=0.1)
        torch.testing.assert_close(pooled, 3 + (mean - 3) * 0.5 / (0.5 + 1 / n))


def test_a_rare_pair_leans_on_its_class_and_its_domain() -> None:
    mean = torch.tensor([[0.0, 10.0, 0.0], [0.0, 10.0, 0.0], [3.0, -4.0, 3.0]], dtype=torch.float64)[..., None]
    counts = torch.full((3, 3), 500)
    counts[2, 1] = 1  # its single sample is far from class 1 elsewhere, 10, moved by domain 2, + 3
    pooled, _ = pooled_means(mean, counts, domain=10.0, label=50.0)
    assert 9 < float(pooled[2, 1]) < 13
    assert (pooled - mean)[counts > 1].abs().max() < 0.2


class TestGradients:
    def test_in_the_means_and_the_variances(self) -> None:
        mean, counts = problem(2, 2, 3, features=2)
        variances = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in VARIANCES.values()]

        def function(mean: Tensor, domain: Tensor, label: Tensor, pair: Tensor) -> tuple[Tensor, Tensor]:
            return pooled_means(mean, counts, domain=domain, label=label, pair=pair)

        assert gradcheck(function, (mean.nan_to_num(0).requires_grad_(), *variances))

    def test_the_mean_of_an_absent_pair_has_none(self) -> None:
        mean, counts = problem(2, 3, 4)
        assert (counts == 0).any()
        mean.requires_grad_()
        pooled, variance = pooled_means(mean, counts)
        (grad,) = torch.autograd.grad(pooled.square().sum() + variance.sum(), mean)
        assert torch.isfinite(grad).all() and (grad[counts == 0] == 0).all() and (grad[counts > 0] != 0).any()


@pytest.mark.parametrize("shape", [(300, 345), (345, 300), (3, 34_500)], ids=str)
def test_a_hundred_thousand_pairs_need_no_table_of_pairs_by_pairs(shape: tuple[int, int]) -> None:
    mean, counts = problem(0, *shape, features=8)
    with LargestTensor() as seen:
        pooled, variance = pooled_means(mean, counts)
    assert seen.numel <= mean.numel()
    assert torch.isfinite(pooled).all() and (variance > 0).all()


@pytest.mark.parametrize("counts_up_to", [10, 10**6])
@pytest.mark.parametrize("offset", [0.0, 1e4])
def test_float32_has_the_accuracy_of_its_digits(offset: float, counts_up_to: int) -> None:
    mean, _ = problem(1, 6, 345, features=16)
    g = torch.Generator().manual_seed(0)
    counts = (counts_up_to ** torch.rand(6, 345, generator=g, dtype=torch.float64)).long()
    counts[torch.rand(6, 345, generator=g) < 0.2] = 0
    mean = (torch.randn(mean.shape, generator=g) + offset).double()  # exact in float32
    pooled, variance = pooled_means(mean, counts)
    found = pooled_means(mean.float(), counts)
    torch.testing.assert_close(found[0].double(), pooled, rtol=0, atol=1e-5 + 1e-6 * offset)
    torch.testing.assert_close(found[1].double(), variance, rtol=1e-4, atol=0)
    assert found[0].dtype == found[1].dtype == torch.float32


class TestWrongInput:
    def test_shapes_and_dtypes(self) -> None:
        mean, counts = problem(0, 3, 4)
        for wrong in (counts.T, counts[:2], counts[..., None]):
            with pytest.raises(ValueError, match=r"^counts .*\(3, 4\)"):
                pooled_means(mean, wrong)
        for spoilt in (mean[0], mean.long()):
            with pytest.raises(ValueError, match=r"^mean .*\(D, C, F\)"):
                pooled_means(spoilt, counts)
        with pytest.raises(ValueError, match=r"^counts is a ndarray"):
            pooled_means(mean, counts.numpy())  # type: ignore[arg-type]

    @pytest.mark.parametrize("shape", SHAPES, ids=str)
    def test_without_any_sample_nothing_is_known(self, shape: tuple[int, int]) -> None:
        pooled, variance = pooled_means(torch.zeros(*shape, 2), torch.zeros(shape))
        assert not torch.isfinite(pooled).any() and not torch.isfinite(variance).any()
