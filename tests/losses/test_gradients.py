"""Appendix B.3 of the paper: the gradients of equations (1) to (3) in the distances, and what counts do to them."""

import math

import pytest
import torch
from torch import Tensor

from crosstail.losses import boda_loss, rescaled_boda_loss

EQUATIONS = {"equation 1": {"balanced": False}, "equation 2": {"nu": 0.0}} | {
    f"equation 3, nu {nu}": {"nu": nu} for nu in (0.5, 1.0, 1.5)
}
Pair = tuple[int, int]


class Sample:
    """One sample amid the centroids of all pairs, with the formulas of the appendix."""

    def __init__(self, seed: int, counts: list[list[int]], own: Pair = (0, 0)) -> None:
        torch.manual_seed(seed)
        self.counts, self.own = torch.tensor(counts), own
        self.z = torch.randn(1, 5, dtype=torch.float64, requires_grad=True)
        self.centroids = torch.randn(*self.counts.shape, 5, dtype=torch.float64, requires_grad=True)
        self.pairs = [(d, c) for d in range(len(counts)) for c in range(len(counts[0])) if (d, c) != own]
        self.positives = [pair for pair in self.pairs if pair[1] == own[1]]

    def distance(self, pair: Pair) -> float:
        return math.dist(self.z[0].tolist(), self.centroids[pair].tolist())

    def strength(self, pair: Pair, nu: float = 1.0, balanced: bool = True) -> float:
        """λ / N_i = N^ν / N_i^(1 + ν)."""
        return int(self.counts[pair]) ** nu / int(self.counts[self.own]) ** (1 + nu) if balanced else 1.0

    def probability(self, pair: Pair, **options: object) -> float:
        """P of the sample belonging to a pair."""
        return math.exp(-self.strength(pair, **options) * self.distance(pair)) / sum(
            math.exp(-self.strength(other, **options) * self.distance(other)) for other in self.pairs
        )

    def slope(self, pair: Pair, **options: object) -> float:
        """∂ℓ / ∂d, worked out: λ / N_i · (1 / (D − 1) − P) for a positive, −λ / N_i · P for a negative."""
        target = 1 / len(self.positives) if pair in self.positives else 0.0
        return self.strength(pair, **options) * (target - self.probability(pair, **options))

    def gradients(self, **options: object) -> tuple[Tensor, dict[Pair, float]]:
        """What autograd finds: ∂ℓ / ∂z, and ∂ℓ / ∂d of every pair, along the line from its centroid to the sample."""
        y, domain = torch.tensor([self.own[1]]), torch.tensor([self.own[0]])
        loss = boda_loss(self.z, y, domain, self.centroids, self.counts, reduction="none", **options)
        in_z, in_centroids = torch.autograd.grad(loss[0], (self.z, self.centroids))
        away = {pair: (self.centroids[pair] - self.z[0]).detach() / self.distance(pair) for pair in self.pairs}
        return in_z[0], {pair: float(in_centroids[pair] @ away[pair]) for pair in self.pairs}


COUNTS = {2: [[3, 7, 1, 2], [5, 2, 9, 4]], 3: [[3, 7, 1], [5, 2, 9], [8, 1, 4]], 4: [[2, 6], [5, 1], [3, 3], [9, 4]]}


@pytest.mark.parametrize("num_domains", COUNTS)
@pytest.mark.parametrize("equation", EQUATIONS)
def test_the_gradient_in_every_distance_and_in_the_features(equation: str, num_domains: int) -> None:
    options = EQUATIONS[equation]
    for seed in range(4):
        sample = Sample(seed, COUNTS[num_domains], own=(seed % num_domains, seed % 2))
        in_z, slopes = sample.gradients(**options)
        assert slopes == pytest.approx({pair: sample.slope(pair, **options) for pair in sample.pairs}, rel=1e-9)
        expected = torch.zeros(5, dtype=torch.float64)
        for pair in sample.pairs:
            direction = (sample.z[0] - sample.centroids[pair]).detach() / sample.distance(pair)
            expected += sample.slope(pair, **options) * direction
        torch.testing.assert_close(in_z, expected, rtol=1e-9, atol=1e-12)


def printed_for_positives(sample: Sample, **options: object) -> float:
    """The appendix's ∂ℓ / ∂d of a positive: 1 / (D − 1) Σ_positives λ / N_i · (1 − P)."""
    parts = [sample.strength(p, **options) * (1 - sample.probability(p, **options)) for p in sample.positives]
    return sum(parts) / len(parts)


@pytest.mark.parametrize("equation", EQUATIONS)
def test_the_printed_formula_for_positives_is_right_for_two_domains(equation: str) -> None:
    sample = Sample(0, COUNTS[2])
    _, slopes = sample.gradients(**EQUATIONS[equation])
    (positive,) = sample.positives
    assert slopes[positive] == pytest.approx(printed_for_positives(sample, **EQUATIONS[equation]), rel=1e-9)


@pytest.mark.parametrize("num_domains", [3, 4])
@pytest.mark.parametrize("equation", EQUATIONS)
def test_for_more_domains_it_is_neither_the_gradient_of_one_positive_nor_their_sum(
    equation: str, num_domains: int
) -> None:
    """It leaves out that a positive is in the denominator of the other positives' terms."""
    options = EQUATIONS[equation]
    sample = Sample(0, COUNTS[num_domains])
    _, slopes = sample.gradients(**options)
    found, printed = [slopes[positive] for positive in sample.positives], printed_for_positives(sample, **options)
    assert all(slope < printed for slope in found) and sum(found) < printed
    left_out = [
        (num_domains - 2) / (num_domains - 1) * sample.strength(p, **options) * sample.probability(p, **options)
        for p in sample.positives
    ]
    assert sum(found) == pytest.approx(printed - sum(left_out), rel=1e-9)


def test_a_positive_that_is_nearest_by_far_is_pushed_away() -> None:
    """With three domains or more, P above 1 / (D − 1) makes the gradient negative: positives become equally near."""
    sample = Sample(0, [[1, 1], [1, 1], [1, 1]])
    with torch.no_grad():
        sample.centroids[1, 0] = sample.z[0] + 0.01
    _, slopes = sample.gradients()
    assert sample.probability((1, 0)) > 0.5 and slopes[1, 0] < 0 < slopes[2, 0]


def test_hard_pairs_have_the_larger_gradients() -> None:
    """Equal counts: the push of a negative falls with its distance, and the pull of a positive grows with it."""
    sample = Sample(1, [[1, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 1]])
    _, slopes = sample.gradients()
    negatives = [pair for pair in sample.pairs if pair not in sample.positives]
    for group in (negatives, sample.positives):
        found = [slopes[pair] for pair in sorted(group, key=sample.distance)]
        assert found == sorted(found)


def test_a_larger_count_scales_the_gradient_of_a_negative_only_while_the_softmax_is_flat() -> None:
    """∝ N^ν at a fixed P; but N is in the exponent of P too, and the gradient of a far frequent negative vanishes."""
    found = []
    for count in (10, 20, 10_000, 1_000_000):
        sample = Sample(2, [[100, 100, 100], [100, count, 100]])
        _, slopes = sample.gradients()
        found.append(-slopes[1, 1])
        assert found[-1] == pytest.approx(sample.strength((1, 1)) * sample.probability((1, 1)), rel=1e-9)
    assert found[1] == pytest.approx(2 * found[0], rel=0.01)
    assert found[3] < found[0] < found[2]


def test_the_rescaled_loss_follows_equation_2_rather_than_equation_3() -> None:
    """docs/decisions/boda-scale.md: cosines of expected gradients per pair, with two domains and opposite tails."""
    tail = torch.tensor([1000.0, 599, 359, 215, 129, 77, 46, 27, 16, 10], dtype=torch.float64)
    torch.manual_seed(0)
    centroids = torch.randn(2, 10, 64, dtype=torch.float64)
    found = {}
    for name, counts in {"opposite": torch.stack([tail, tail.flip(0)]), "balanced": torch.full((2, 10), 1000)}.items():
        pair = torch.multinomial(counts.double().flatten(), 4000, replacement=True)
        domain, y = pair // 10, pair % 10
        z = (centroids[domain, y] + torch.randn(4000, 64, dtype=torch.float64)).requires_grad_()
        arguments = z, y, domain, centroids, counts
        losses = [rescaled_boda_loss(*arguments), boda_loss(*arguments, nu=0.0), boda_loss(*arguments)]
        gradients = [torch.autograd.grad(loss, z)[0] for loss in losses]
        rescaled, *printed = [torch.zeros(20, 64).double().index_add_(0, pair, g).flatten() for g in gradients]
        found[name] = [float(torch.cosine_similarity(rescaled, other, dim=0)) for other in printed]
    assert found["balanced"] == pytest.approx([1, 1], abs=1e-3)
    assert found["opposite"][0] > 0.93 and found["opposite"][1] < 0.6
