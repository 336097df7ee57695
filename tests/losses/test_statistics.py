import copy
from itertools import pairwise
from typing import Any, get_args

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor

from crosstail.losses import LowRankPrecision, PairStatistics
from crosstail.losses.statistics import Covariance

SHAPE = (2, 3, 4)  # domains, classes, features
COVARIANCES = get_args(Covariance)
SPREADS = COVARIANCES[1:]
Samples = tuple[Tensor, Tensor, Tensor]


def draw_samples(seed: int = 0, size: int = 30, shape: tuple[int, int, int] = SHAPE, offset: float = 5.0) -> Samples:
    generator = torch.Generator().manual_seed(seed)
    num_domains, num_classes, num_features = shape
    mixing = torch.randn(num_features, num_features, generator=generator, dtype=torch.float64)
    return (
        torch.randn(size, num_features, generator=generator, dtype=torch.float64) @ mixing + offset,
        torch.randint(num_classes, (size,), generator=generator),
        torch.randint(num_domains, (size,), generator=generator),
    )


def collect(
    samples: Samples, *cuts: int, covariance: Any = "none", shape: tuple[int, int, int] = SHAPE, **options: Any
) -> PairStatistics:
    """The statistics of samples that come in batches, which end at the cuts, in float64."""
    statistics = PairStatistics(*shape, covariance, **options).double()
    edges = [0, *sorted(cuts), len(samples[0])]
    for start, end in pairwise(edges):
        statistics.update(*(part[start:end] for part in samples))
    return statistics


def of_pair(samples: Samples, d: int, c: int) -> NDArray[np.float64]:
    z, y, domain = (part.numpy() for part in samples)
    return np.array([z[i] for i in range(len(z)) if domain[i] == d and y[i] == c]).reshape(-1, z.shape[1])


def mean_and_covariance(rows: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of a pair's samples (n, F), by loops; the covariance divides by n."""
    num_features = rows.shape[1]
    mean, covariance = np.zeros(num_features), np.zeros((num_features, num_features))
    for row in rows:
        mean += row / len(rows)
    for row in rows:
        for f, g in np.ndindex(num_features, num_features):
            covariance[f, g] += (row[f] - mean[f]) * (row[g] - mean[g]) / len(rows)
    return mean, covariance


def dense(statistics: PairStatistics, d: int, c: int) -> NDArray[np.float64]:
    """The covariance that the statistics stand for, as far as they know it."""
    if statistics.covariance == "full":
        return statistics.full[d, c].double().numpy()
    variance = statistics.variance[d, c].double()
    if statistics.covariance == "diagonal":
        return torch.diag(variance).numpy()
    factor = statistics.factor[d, c].double()
    return (factor @ factor.T + torch.diag(variance - factor.square().sum(1))).numpy()


def assert_same(a: PairStatistics, b: PairStatistics, rtol: float = 1e-9, atol: float = 1e-9) -> None:
    assert torch.equal(a.counts, b.counts)
    torch.testing.assert_close(a.mean, b.mean, rtol=rtol, atol=atol)
    if a.covariance != "none":
        for d, c in np.ndindex(a.mean.shape[0], a.mean.shape[1]):
            np.testing.assert_allclose(dense(a, d, c), dense(b, d, c), rtol=rtol, atol=atol)


class TestStream:
    @pytest.mark.parametrize("covariance", COVARIANCES)
    @given(seed=st.integers(0, 10**6), size=st.integers(0, 40), cuts=st.lists(st.integers(0, 40), max_size=6))
    @settings(deadline=None, max_examples=25)
    def test_any_split_into_batches(self, covariance: Any, seed: int, size: int, cuts: list[int]) -> None:
        samples = draw_samples(seed, size)
        # A rank as large as the number of features keeps all of the covariance.
        statistics = collect(samples, *[min(cut, size) for cut in cuts], covariance=covariance, rank=4)
        for d, c in np.ndindex(2, 3):
            rows = of_pair(samples, d, c)
            assert int(statistics.counts[d, c]) == len(rows)
            if len(rows) == 0:
                assert (statistics.mean[d, c] == 0).all()
                continue
            mean, expected = mean_and_covariance(rows)
            np.testing.assert_allclose(statistics.mean[d, c], mean, rtol=1e-10)
            if covariance == "diagonal":
                expected = np.diag(np.diag(expected))
            if covariance != "none":
                np.testing.assert_allclose(dense(statistics, d, c), expected, rtol=1e-8, atol=1e-8)

    @pytest.mark.parametrize("rank", [3, 7, 10])
    @given(seed=st.integers(0, 10**6), cuts=st.lists(st.integers(0, 7), max_size=4))
    @settings(deadline=None, max_examples=10)
    def test_low_rank_is_exact_for_so_few_samples(self, rank: int, seed: int, cuts: list[int]) -> None:
        shape = (1, 1, 12)
        samples = draw_samples(seed, rank, shape)  # n samples span n − 1 dimensions around their mean
        cuts = [min(cut, rank) for cut in cuts]
        statistics = collect(samples, *cuts, covariance="low_rank", rank=rank, shape=shape)
        _, expected = mean_and_covariance(of_pair(samples, 0, 0))
        np.testing.assert_allclose(dense(statistics, 0, 0), expected, rtol=1e-8, atol=1e-8)

    def test_low_rank_keeps_the_largest_directions_and_all_variances(self) -> None:
        torch.manual_seed(0)
        axes = torch.linalg.qr(torch.randn(12, 12, dtype=torch.float64))[0]
        z = torch.randn(400, 12, dtype=torch.float64) * torch.tensor([9.0, 6.0, *[0.1] * 10]) @ axes.T
        zeros = torch.zeros(400, dtype=torch.int64)
        statistics = collect((z, zeros, zeros), 100, 150, covariance="low_rank", rank=2, shape=(1, 1, 12))
        _, expected = mean_and_covariance(z.numpy())
        np.testing.assert_allclose(statistics.variance[0, 0], np.diag(expected), rtol=1e-9)
        np.testing.assert_allclose(dense(statistics, 0, 0), expected, atol=0.01 * 81)

    def test_update_takes_any_float_and_no_gradient(self) -> None:
        z, y, domain = draw_samples()
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            statistics = PairStatistics(*SHAPE, "diagonal")
            statistics.update(z.to(dtype).requires_grad_(), y, domain)
            assert statistics.mean.dtype == torch.float32
            assert not statistics.mean.requires_grad
            expected = collect((z.to(dtype).double(), y, domain), covariance="diagonal")
            torch.testing.assert_close(statistics.mean.double(), expected.mean, rtol=1e-5, atol=1e-5)

    def test_untouched_pairs_are_not_changed(self) -> None:
        z, y, domain = draw_samples()
        statistics = collect((z, y, domain), covariance="full")
        before = copy.deepcopy(statistics)
        one = torch.ones(3, dtype=torch.int64)
        statistics.update(z[:3], 2 * one, one)
        for name in ("mean", "counts", "full"):
            changed = (getattr(statistics, name) != getattr(before, name)).flatten(2 if name != "counts" else 0)
            touched = changed.any(-1).nonzero() if name != "counts" else changed.view(2, 3).nonzero()
            assert touched.tolist() == [[1, 2]]

    @pytest.mark.parametrize("covariance", COVARIANCES)
    def test_a_number_that_is_none_is_refused_and_changes_nothing(self, covariance: Any) -> None:
        z, y, domain = draw_samples()
        statistics = collect((z, y, domain), covariance=covariance)
        before = copy.deepcopy(statistics.state_dict())
        z[7, 2] = torch.inf
        with pytest.raises(ValueError, match=r"z\[7, 2\] is NaN or infinite"):
            statistics.update(z, y, domain)
        assert all(torch.equal(value, before[name]) for name, value in statistics.state_dict().items())

    @pytest.mark.parametrize(
        ("row", "c", "d", "message"),
        [
            (3, 3, 0, "y has a 3, expected 0 to 2"),  # would count for class 0 of domain 1
            (3, -1, 1, "y has a -1, expected 0 to 2"),
            (0, 0, 2, "domain has a 2, expected 0 to 1"),
            (0, 5, -1, "domain has a -1, expected 0 to 1"),
        ],
    )
    def test_a_label_out_of_range_is_refused_and_changes_nothing(self, row: int, c: int, d: int, message: str) -> None:
        z, y, domain = draw_samples()
        statistics = collect((z, y, domain))
        before = copy.deepcopy(statistics.state_dict())
        y[row], domain[row] = c, d
        with pytest.raises(ValueError, match=message):
            statistics.update(z, y, domain)
        assert all(torch.equal(value, before[name]) for name, value in statistics.state_dict().items())

    def test_huge_features_are_not_refused(self) -> None:
        statistics = PairStatistics(1, 1, 2)
        zeros = torch.zeros(2, dtype=torch.int64)
        statistics.update(torch.tensor([[3e38, 1e38], [1e38, 3e38]]) / 2, zeros, zeros)
        torch.testing.assert_close(statistics.mean[0, 0], torch.tensor([1e38, 1e38]))

    @pytest.mark.parametrize("covariance", ["diagonal", "full"])
    def test_a_large_offset_costs_no_digits_of_the_variance(self, covariance: Any) -> None:
        z, y, domain = draw_samples(size=2000)
        shifted = (z + 1e4).float()
        statistics = PairStatistics(*SHAPE, covariance)
        for i in range(0, 2000, 50):
            statistics.update(shifted[i : i + 50], y[i : i + 50], domain[i : i + 50])
        for d, c in np.ndindex(2, 3):
            _, expected = mean_and_covariance(of_pair((shifted.double(), y, domain), d, c))
            found = dense(statistics, d, c)
            np.testing.assert_allclose(np.diag(found), np.diag(expected), rtol=1e-4)

    @pytest.mark.parametrize("covariance", ["none", "diagonal", "full"])
    def test_ten_million_samples_in_float32(self, covariance: Any) -> None:
        """Mean 1000 ± 1: half a unit in the last place of the mean is 3e-5, which is the error that is allowed."""
        num_pairs, num_features, batches, size = 2, 2, 1_000, 10_000
        if covariance == "full":  # which takes a pair's samples some at a time, and so is slower
            size = 500
        statistics = PairStatistics(1, num_pairs, num_features, covariance)
        total, total_squares = np.zeros((num_pairs, num_features)), np.zeros((num_pairs, num_features))
        generator = torch.Generator().manual_seed(0)
        y, domain = torch.arange(size) % num_pairs, torch.zeros(size, dtype=torch.int64)
        for _ in range(batches):
            z = torch.randn(size, num_features, generator=generator) + 1000
            statistics.update(z, y, domain)
            centred = z.double().numpy() - 1000
            for c in range(num_pairs):
                total[c] += centred[c::num_pairs].sum(0)
                total_squares[c] += np.square(centred[c::num_pairs]).sum(0)
        n = batches * size / num_pairs
        mean, variance = total / n, total_squares / n - np.square(total / n)
        assert np.abs(statistics.mean[0].double().numpy() - 1000 - mean).max() < 4e-5
        for c in range(num_pairs if covariance != "none" else 0):
            np.testing.assert_allclose(np.diag(dense(statistics, 0, c)), variance[c], rtol=1e-4)

    def test_many_small_batches_do_not_bring_the_mean_to_a_standstill(self) -> None:
        """At 10⁵ samples a step is far below the last place of the mean, and yet it has to go on moving."""
        statistics = PairStatistics(1, 1, 1)
        zero = torch.zeros(100, dtype=torch.int64)
        for value in [1000.0] * 1000 + [1000.01] * 1000:
            statistics.update(torch.full((100, 1), value), zero, zero)
        assert abs(float(statistics.mean) - 1000.005) < 7e-5


class TestMomentum:
    @staticmethod
    def oracle(samples: Samples, cuts: list[int], memory: float, d: int, c: int) -> tuple[Any, Any]:
        """A running mean and covariance of one pair, batch by batch, whose past is capped."""
        seen = 0
        mean = np.zeros(samples[0].shape[1])
        second = np.zeros((len(mean), len(mean)))  # the second moments, from which the covariance follows
        edges = [0, *cuts, len(samples[0])]
        for start, end in pairwise(edges):
            rows = of_pair((samples[0][start:end], samples[1][start:end], samples[2][start:end]), d, c)
            if len(rows):
                past = min(seen, memory)
                weight = past + len(rows)
                mean = (past * mean + sum(rows)) / weight
                second = (past * second + sum(np.outer(row, row) for row in rows)) / weight
                seen += len(rows)
        return mean, second - np.outer(mean, mean)

    @pytest.mark.parametrize("covariance", COVARIANCES)
    @given(
        seed=st.integers(0, 10**6),
        momentum=st.sampled_from([0.0, 0.5, 0.8, 0.95]),
        cuts=st.lists(st.integers(0, 60), min_size=1, max_size=8),
    )
    @settings(deadline=None, max_examples=15)
    def test_the_past_is_capped(self, covariance: Any, seed: int, momentum: float, cuts: list[int]) -> None:
        samples = draw_samples(seed, 60)
        cuts = sorted(cuts)
        statistics = collect(samples, *cuts, covariance=covariance, rank=4, momentum=momentum)
        for d, c in np.ndindex(2, 3):
            mean, expected = self.oracle(samples, cuts, momentum / (1 - momentum), d, c)
            np.testing.assert_allclose(statistics.mean[d, c], mean, rtol=1e-5)
            if covariance == "diagonal":
                expected = np.diag(np.diag(expected))
            if covariance != "none":
                np.testing.assert_allclose(dense(statistics, d, c), expected, rtol=1e-4, atol=1e-4)

    def test_one_per_pair(self) -> None:
        samples = draw_samples(3, 200)
        momentum = torch.tensor([[0.0, 0.5, 0.9], [0.99, 0.3, 0.7]])
        cuts = list(range(10, 200, 10))
        statistics = collect(samples, *cuts, covariance="diagonal", momentum=momentum)
        for d, c in np.ndindex(2, 3):
            m = float(momentum[d, c])
            mean, covariance = self.oracle(samples, cuts, m / (1 - m), d, c)
            np.testing.assert_allclose(statistics.mean[d, c], mean, rtol=1e-4)
            np.testing.assert_allclose(statistics.variance[d, c], np.diag(covariance), rtol=1e-3)

    def test_a_new_sample_has_the_weight_one_minus_m_in_the_end(self) -> None:
        statistics = PairStatistics(1, 1, 1, momentum=0.9)
        zero = torch.zeros(1, dtype=torch.int64)
        for _ in range(30):
            statistics.update(torch.zeros(1, 1), zero, zero)
        statistics.update(torch.ones(1, 1), zero, zero)
        assert float(statistics.mean) == pytest.approx(0.1)
        assert int(statistics.counts) == 31

    @pytest.mark.parametrize("momentum", [1.0, -0.1, float("nan")])
    def test_wrong(self, momentum: float) -> None:
        with pytest.raises(ValueError, match="expected at least 0 and below 1"):
            PairStatistics(*SHAPE, momentum=momentum)


@pytest.mark.parametrize("covariance", COVARIANCES)
class TestCombination:
    @given(seed=st.integers(0, 10**6), size=st.integers(0, 30), cut=st.integers(0, 30))
    @settings(deadline=None, max_examples=15)
    def test_merge_is_concatenation(self, covariance: Any, seed: int, size: int, cut: int) -> None:
        samples, cut = draw_samples(seed, size), min(cut, size)
        first = collect(tuple(part[:cut] for part in samples), covariance=covariance, rank=4)  # type: ignore[arg-type]
        second = collect(tuple(part[cut:] for part in samples), covariance=covariance, rank=4)  # type: ignore[arg-type]
        assert first.merge(second) is first
        assert_same(first, collect(samples, covariance=covariance, rank=4))

    @given(seeds=st.tuples(*[st.integers(0, 10**6)] * 3))
    @settings(deadline=None, max_examples=10)
    def test_merge_is_associative(self, covariance: Any, seeds: tuple[int, int, int]) -> None:
        def parts() -> list[PairStatistics]:
            return [collect(draw_samples(seed, 20), covariance=covariance, rank=4) for seed in seeds]

        a, b, c = parts()
        left = a.merge(b).merge(c)
        a, b, c = parts()
        assert_same(left, a.merge(b.merge(c)))

    @given(seed=st.integers(0, 10**6), momentum=st.floats(0, 1))
    @settings(deadline=None, max_examples=15)
    def test_blend_is_the_papers_update(self, covariance: Any, seed: int, momentum: float) -> None:
        z, y, domain = draw_samples(seed, 60)
        first_time = (domain == 0) & (y == 0)  # this pair comes only in the second pass,
        gone = (domain == 1) & (y == 2)  # and that one only in the first
        early = torch.arange(60) < 30
        rows_before, rows_after = early & ~first_time, ~early & ~gone
        kept = collect((z[rows_before], y[rows_before], domain[rows_before]), covariance=covariance, rank=4)
        fresh = collect((z[rows_after], y[rows_after], domain[rows_after]), covariance=covariance, rank=4)
        before = copy.deepcopy(kept)
        assert kept.blend(fresh, momentum) is kept
        for d, c in np.ndindex(2, 3):
            old, new = int(before.counts[d, c]), int(fresh.counts[d, c])
            m = 1.0 if new == 0 else momentum if old else 0.0
            expected = m * before.mean[d, c] + (1 - m) * fresh.mean[d, c]
            torch.testing.assert_close(kept.mean[d, c], expected, rtol=1e-9, atol=1e-9)
            assert int(kept.counts[d, c]) == (new or old)
            if covariance != "none":
                spread = m * dense(before, d, c) + (1 - m) * dense(fresh, d, c)
                np.testing.assert_allclose(dense(kept, d, c), spread, rtol=1e-8, atol=1e-8)

    def test_others_do_not_change(self, covariance: Any) -> None:
        a, b = (collect(draw_samples(seed), covariance=covariance) for seed in (1, 2))
        before = copy.deepcopy(b.state_dict())
        a.merge(b)
        a.blend(b, 0.2)
        a.update(*draw_samples(3))
        assert all(torch.equal(value, before[name]) for name, value in b.state_dict().items())

    def test_of_other_shape_or_kind(self, covariance: Any) -> None:
        statistics = PairStatistics(*SHAPE, covariance)
        with pytest.raises(ValueError, match="cannot combine statistics"):
            statistics.merge(PairStatistics(2, 3, 5, covariance))
        other = "diagonal" if covariance != "diagonal" else "none"
        with pytest.raises(ValueError, match="cannot combine statistics"):
            statistics.blend(PairStatistics(*SHAPE, other), 0.5)  # type: ignore[arg-type]

    def test_state_can_be_restored(self, covariance: Any) -> None:
        original = collect(draw_samples(1), covariance=covariance, momentum=0.9)
        restored = PairStatistics(*SHAPE, covariance, momentum=0.9).double()
        restored.load_state_dict(original.state_dict())
        assert_same(original, restored, rtol=0, atol=0)
        for statistics in (original, restored):
            statistics.update(*draw_samples(2))
        assert_same(original, restored, rtol=0, atol=0)


class TestPrecision:
    @staticmethod
    def shrunk(samples: Samples, d: int, c: int, covariance: str, shrinkage: float) -> NDArray[np.float64]:
        """Σ̂ = (n Σ + k diag(σ̄²)) / (n + k) of the docstring, by loops."""
        common, total = np.zeros(4), 0
        for e, k in np.ndindex(2, 3):
            rows = of_pair(samples, e, k)
            if len(rows):
                common += len(rows) * np.diag(mean_and_covariance(rows)[1])
                total += len(rows)
        common /= total
        common = np.maximum(common, 1e-3 * common.mean() or 1.0)
        rows = of_pair(samples, d, c)
        own = mean_and_covariance(rows)[1] if len(rows) else np.zeros((4, 4))
        own = np.diag(np.diag(own)) if covariance == "diagonal" else own + 1e-3 * np.diag(common)
        return (len(rows) * own + shrinkage * np.diag(common)) / (len(rows) + shrinkage)

    @staticmethod
    def inverse(statistics: PairStatistics, d: int, c: int, shrinkage: float = 10.0) -> NDArray[np.float64]:
        precision = statistics.precision(shrinkage)
        if isinstance(precision, LowRankPrecision):
            factor = precision.factor[d, c]
            return (torch.diag(precision.diagonal[d, c]) - factor @ factor.T).numpy()
        return (torch.diag(precision[d, c]) if precision.ndim == 3 else precision[d, c]).numpy()

    @pytest.mark.parametrize("covariance", SPREADS)
    @given(seed=st.integers(0, 10**6), size=st.integers(1, 50), shrinkage=st.floats(0.1, 100))
    @settings(deadline=None, max_examples=15)
    def test_is_the_inverse_of_the_stated_covariance(
        self, covariance: Any, seed: int, size: int, shrinkage: float
    ) -> None:
        samples = draw_samples(seed, size)
        statistics = collect(samples, covariance=covariance, rank=4)
        for d, c in np.ndindex(2, 3):
            expected = self.shrunk(samples, d, c, covariance, shrinkage)
            product = self.inverse(statistics, d, c, shrinkage) @ expected
            np.testing.assert_allclose(product, np.eye(4), atol=1e-5)

    def test_woodbury_is_the_dense_inverse(self) -> None:
        samples = draw_samples(0, 60, (2, 3, 10))
        statistics = collect(samples, covariance="low_rank", rank=3, shape=(2, 3, 10))
        variance, counts = statistics.variance.numpy(), statistics.counts.numpy()
        common = (variance * counts[..., None]).sum((0, 1)) / counts.sum()
        for d, c in np.ndindex(2, 3):
            own = dense(statistics, d, c) + 1e-3 * np.diag(common)
            expected = (counts[d, c] * own + 10 * np.diag(common)) / (counts[d, c] + 10)
            np.testing.assert_allclose(self.inverse(statistics, d, c), np.linalg.inv(expected), rtol=1e-6, atol=1e-9)

    @pytest.mark.parametrize("covariance", SPREADS)
    def test_a_pair_with_one_sample_has_the_common_inverse(self, covariance: Any) -> None:
        z, y, domain = draw_samples(0, 200)
        frequent = (domain != 1) | (y != 2)
        z, y, domain = z[frequent], y[frequent], domain[frequent]
        samples = torch.cat([z, z[:1]]), torch.cat([y, torch.tensor([2])]), torch.cat([domain, torch.tensor([1])])
        statistics = collect(samples, covariance=covariance)
        assert int(statistics.counts[1, 2]) == 1
        pooled = sum(
            len(of_pair(samples, d, c)) * np.diag(mean_and_covariance(of_pair(samples, d, c))[1])
            for d in range(2)
            for c in range(3)
        ) / len(samples[0])
        np.testing.assert_allclose(np.diag(self.inverse(statistics, 1, 2)) * pooled, 1.1, rtol=0.01)

    @pytest.mark.parametrize("covariance", SPREADS)
    @pytest.mark.parametrize("value", [0.0, 1.0, 1e4])
    def test_features_that_never_vary(self, covariance: Any, value: float) -> None:
        y, domain = torch.arange(12) % 3, torch.arange(12) // 6
        statistics = PairStatistics(*SHAPE, covariance)
        statistics.update(torch.full((12, 4), value), y, domain)
        for d, c in np.ndindex(2, 3):
            inverse = self.inverse(statistics, d, c)
            assert np.isfinite(inverse).all()
            assert (np.linalg.eigvalsh(inverse) > 0).all()

    @pytest.mark.parametrize("covariance", SPREADS)
    def test_one_constant_feature_and_nothing_seen(self, covariance: Any) -> None:
        statistics = PairStatistics(*SHAPE, covariance)
        assert np.isfinite(self.inverse(statistics, 0, 0)).all()
        z, y, domain = draw_samples(0, 300)
        z[:, 1] = 7.0
        statistics.update(z, y, domain)
        inverse = self.inverse(statistics, 0, 0)
        assert np.isfinite(inverse).all()
        # A feature that never varies weighs at most some thousand times as much as the others.
        assert np.diag(inverse)[1] < 1e5 * np.diag(inverse)[[0, 2, 3]].min()

    @pytest.mark.parametrize("covariance", SPREADS)
    def test_with_momentum_only_remembered_samples_count(self, covariance: Any) -> None:
        z, y, domain = draw_samples(0, 300)
        statistics = collect((z, y, domain), *range(300), covariance=covariance, momentum=0.0)
        # Every pair remembers one sample and has no variance of its own: all have the same inverse.
        first = self.inverse(statistics, 0, 0)
        assert all(np.allclose(self.inverse(statistics, d, c), first) for d in range(2) for c in range(3))
        assert np.diag(first).max() < 2

    def test_there_is_none_without_a_covariance(self) -> None:
        with pytest.raises(ValueError, match="keep no covariance"):
            PairStatistics(*SHAPE).precision()


def test_unknown_covariance() -> None:
    with pytest.raises(ValueError, match=r"'spherical'.* none, diagonal, low_rank, full"):
        PairStatistics(*SHAPE, "spherical")  # type: ignore[arg-type]
