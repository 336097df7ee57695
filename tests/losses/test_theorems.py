import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from crosstail.losses import PairStatistics, boda_loss
from crosstail.transfer import TransferabilityGraph, TransferStatistics, boda_lower_bound


@dataclass(frozen=True)
class TrainingSet:
    """Features of every sample of a training set in which every pair occurs."""

    z: Tensor
    y: Tensor
    domain: Tensor
    counts: Tensor

    def loss(self, nu: float) -> float:
        statistics = PairStatistics(*self.counts.shape, self.z.shape[1]).double()
        statistics.update(self.z, self.y, self.domain)
        assert torch.equal(statistics.counts, self.counts)
        return float(
            boda_loss(self.z, self.y, self.domain, statistics.mean, self.counts, nu=nu, reduction="sum").item()
        )

    def graph(self) -> TransferabilityGraph:
        num_domains, num_classes = self.counts.shape
        return TransferabilityGraph.from_features(
            self.z, self.y, self.domain, num_domains=num_domains, num_classes=num_classes
        )


@st.composite
def training_sets(draw: st.DrawFn) -> TrainingSet:
    num_domains, num_classes = draw(st.integers(2, 4)), draw(st.integers(2, 5))
    count = st.one_of(st.just(1), st.integers(1, 12))
    counts = torch.tensor([[draw(count) for _ in range(num_classes)] for _ in range(num_domains)])
    generator = torch.Generator().manual_seed(draw(st.integers(0, 10**6)))
    pair = torch.arange(counts.numel()).repeat_interleave(counts.flatten())
    num_features = draw(st.integers(1, 6))
    means = torch.randn(counts.numel(), num_features, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(pair), num_features, generator=generator, dtype=torch.float64)
    scale = 10.0 ** draw(st.floats(-1, 2))
    z = scale * (means[pair] + draw(st.sampled_from([0.0, 0.1, 3.0])) * noise)
    return TrainingSet(z, pair % num_classes, pair // num_classes, counts)


def alpha_beta_gamma(data: TrainingSet, nu: float) -> tuple[float, float, float]:
    """Definitions 1, 3 and 4, one expectation at a time."""
    num_domains, num_classes = data.counts.shape
    rows = {
        (d, c): [
            z
            for z, y, e in zip(data.z.tolist(), data.y.tolist(), data.domain.tolist(), strict=True)
            if (e, y) == (d, c)
        ]
        for d in range(num_domains)
        for c in range(num_classes)
    }
    centroid = {pair: [sum(column) / len(z) for column in zip(*z, strict=True)] for pair, z in rows.items()}

    def trans(a: tuple[int, int], b: tuple[int, int]) -> float:
        return sum(math.dist(z, centroid[b]) for z in rows[a]) / len(rows[a])

    def edge(a: tuple[int, int], b: tuple[int, int]) -> float:
        return (len(rows[b]) / len(rows[a])) ** nu * trans(a, b)

    def mean(values: list[float]) -> float:
        return sum(values) / len(values)

    ds, cs = range(num_domains), range(num_classes)
    alpha = mean([mean([mean([edge((d, c), (e, c)) for e in ds if e != d]) for d in ds]) for c in cs])
    beta = mean([mean([mean([edge((d, c), (d, k)) for k in cs if k != c]) for c in cs]) for d in ds])
    gamma = mean(
        [
            mean([mean([mean([edge((d, c), (e, k)) for k in cs if k != c]) for c in cs]) for e in ds if e != d])
            for d in ds
        ]
    )
    return alpha, beta, gamma


def bound(data: TrainingSet, statistics: tuple[float, float, float]) -> float:
    """The right-hand side of the theorems as it is printed."""
    (num_domains, num_classes), n = data.counts.shape, len(data.z)
    alpha, beta, gamma = statistics
    exponent = (
        num_classes * num_domains / n * alpha - num_classes / n * beta - num_classes * (num_domains - 1) / n * gamma
    )
    if exponent > 700:  # where exp overflows, the constant beside it is nothing
        return n * (math.log(num_domains * (num_classes - 1)) + exponent)
    return n * math.log(num_domains - 1 + num_domains * (num_classes - 1) * math.exp(exponent))


@given(data=training_sets())
@settings(deadline=None, max_examples=60)
def test_theorem_1(data: TrainingSet) -> None:
    statistics = alpha_beta_gamma(data, nu=0.0)
    expected = bound(data, statistics)
    graph = data.graph()
    assert graph.statistics == pytest.approx(statistics, rel=1e-4)  # a graph is made in float32
    assert boda_lower_bound(graph.statistics, data.counts) == pytest.approx(expected, rel=1e-4)
    assert data.loss(nu=0.0) >= expected * (1 - 1e-9)


@given(data=training_sets(), nu=st.floats(0.01, 1.5))
@settings(deadline=None, max_examples=60)
def test_theorem_2(data: TrainingSet, nu: float) -> None:
    statistics = alpha_beta_gamma(data, nu)
    expected = bound(data, statistics)
    calibrated = data.graph().calibrated_statistics(data.counts, nu)
    assert calibrated == pytest.approx(statistics, rel=1e-4)
    assert boda_lower_bound(calibrated, data.counts) == pytest.approx(expected, rel=1e-4)
    assert data.loss(nu=nu) >= expected * (1 - 1e-9)


def symmetric(num_domains: int, num_classes: int, per_pair: int) -> TrainingSet:
    """All samples of a pair at one point, the pairs at the corners of a regular simplex: all distances are equal."""
    num_pairs = num_domains * num_classes
    pair = torch.arange(num_pairs).repeat_interleave(per_pair)
    corners = 3 * torch.eye(num_pairs, dtype=torch.float64)
    counts = torch.full((num_domains, num_classes), per_pair)
    return TrainingSet(corners[pair], pair % num_classes, pair // num_classes, counts)


@pytest.mark.parametrize("nu", [0.0, 0.5, 1.0])
@pytest.mark.parametrize(
    "data",
    [symmetric(2, 2, 1), symmetric(3, 4, 5), symmetric(4, 2, 3)],
    ids=["2 domains", "3 domains", "4 domains"],
)
def test_theorems_are_tight_where_all_distances_are_equal(data: TrainingSet, nu: float) -> None:
    expected = boda_lower_bound(data.graph().calibrated_statistics(data.counts, nu), data.counts)
    assert data.loss(nu=nu) == pytest.approx(expected, rel=1e-5)


def test_theorem_1_misses_what_jensens_inequality_gives_away() -> None:
    """Two domains and two classes at the corners of a rectangle: alike for every sample, but β and γ differ."""
    pair = torch.arange(4)
    domain, y = pair // 2, pair % 2
    data = TrainingSet(torch.stack([3.0 * domain, 4.0 * y], 1).double(), y, domain, torch.ones(2, 2).long())
    assert data.graph().statistics == pytest.approx((3.0, 4.0, 5.0))
    # The denominator has e⁻⁴ + e⁻⁵ where the bound has twice the geometric mean of the two.
    assert data.loss(nu=0.0) == pytest.approx(4 * (3 + math.log(math.exp(-3) + math.exp(-4) + math.exp(-5))))
    lower = boda_lower_bound(data.graph().statistics, data.counts)
    assert lower == pytest.approx(4 * (3 + math.log(math.exp(-3) + 2 * math.exp(-4.5))))


def test_theorem_1_is_far_from_tight_for_samples_that_differ() -> None:
    data = symmetric(2, 3, 4)
    torch.manual_seed(0)
    spread = TrainingSet(data.z + 5 * torch.randn_like(data.z), data.y, data.domain, data.counts)
    assert spread.loss(nu=0.0) > 1.001 * boda_lower_bound(spread.graph().statistics, spread.counts)


def test_theorem_bound_asks_for_every_pair() -> None:
    data = symmetric(2, 3, 2)
    counts = data.counts.numpy().copy()
    counts[1, 2] = 0
    with pytest.raises(ValueError, match=r"\(domain 1, class 2\) has none"):
        boda_lower_bound(data.graph().statistics, counts)
    with pytest.raises(ValueError, match="two domains and two classes, found 1 and 3"):
        boda_lower_bound(data.graph().statistics, data.counts[:1])


def samples_of(counts: list[list[int]], seed: int) -> TrainingSet:
    """Random features with these counts."""
    table = torch.tensor(counts)
    pair = torch.arange(table.numel()).repeat_interleave(table.flatten())
    z = torch.randn(len(pair), 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return TrainingSet(z, pair % table.shape[1], pair // table.shape[1], table)


@pytest.mark.parametrize("nu", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("counts", [[[4, 1, 2], [1, 5, 2]], [[2, 3], [1, 4], [3, 1]]], ids=["2 domains", "3 domains"])
def test_every_step_of_the_proofs(counts: list[list[int]], nu: float) -> None:
    """Appendices A.2 (ν = 0) and A.3, numbered equation by numbered equation, with loops."""
    data = samples_of(counts, seed=1)
    num_domains, num_classes, n = len(counts), len(counts[0]), len(data.z)
    alphas, betas, gammas, losses, ts = [], [], [], [], []
    for z, y, d in zip(data.z.tolist(), data.y.tolist(), data.domain.tolist(), strict=True):
        near: dict[tuple[int, int], float] = {}  # the calibrated distance
        for e in range(num_domains):
            for c in range(num_classes):
                rows = data.z[(data.domain == e) & (data.y == c)]
                near[e, c] = (counts[e][c] / counts[d][y]) ** nu * math.dist(z, rows.mean(0).tolist()) / counts[d][y]
        positives = [near[e, y] for e in range(num_domains) if e != d]
        same_domain = [near[d, c] for c in range(num_classes) if c != y]
        others = [near[e, c] for e in range(num_domains) for c in range(num_classes) if e != d and c != y]
        mean_positive = sum(positives) / (num_domains - 1)
        denominator = sum(math.exp(-near[pair]) for pair in near if pair != (d, y))
        losses.append(math.log(denominator / math.exp(-mean_positive)))
        ts.append(mean_positive - (sum(same_domain) + sum(others)) / (num_domains * (num_classes - 1)))
        alphas.append(mean_positive)
        betas.append(sum(same_domain) / (num_domains * (num_classes - 1)))
        gammas.append(sum(others) / (num_domains * (num_classes - 1)))

    def phi(x: float) -> float:
        return math.log(num_domains - 1 + num_domains * (num_classes - 1) * math.exp(x))

    assert sum(losses) == pytest.approx(data.loss(nu), rel=1e-9)
    assert all(loss >= phi(t) for loss, t in zip(losses, ts, strict=True))
    assert sum(losses) > sum(map(phi, ts)) > n * phi(sum(ts) / n)
    terms = [sum(values) / n for values in (alphas, betas, gammas)]
    assert sum(ts) / n == pytest.approx(terms[0] - terms[1] - terms[2], rel=1e-9)
    alpha, beta, gamma = data.graph().calibrated_statistics(data.counts, nu)
    factors = num_classes * num_domains / n, num_classes / n, num_classes * (num_domains - 1) / n
    assert terms == pytest.approx([f * v for f, v in zip(factors, (alpha, beta, gamma), strict=True)], rel=1e-4)
    lower = boda_lower_bound(data.graph().calibrated_statistics(data.counts, nu), data.counts)
    assert n * phi(sum(ts) / n) == pytest.approx(lower, rel=1e-4)


@given(
    counts=st.lists(st.lists(st.integers(1, 50), min_size=3, max_size=3), min_size=2, max_size=4),
    points=st.lists(st.tuples(*[st.floats(0, 1e4)] * 3), min_size=1, max_size=6),
)
def test_lemma_1_the_bound_is_convex_in_the_statistics(
    counts: list[list[int]], points: list[tuple[float, float, float]]
) -> None:
    bounds = [boda_lower_bound(TransferStatistics(*point), torch.tensor(counts)) for point in points]
    middle = TransferStatistics(*(sum(values) / len(points) for values in zip(*points, strict=True)))
    assert sum(bounds) / len(bounds) >= boda_lower_bound(middle, torch.tensor(counts)) * (1 - 1e-9) - 1e-9
