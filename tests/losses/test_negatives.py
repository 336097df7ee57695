import itertools
import math
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from crosstail.losses import (
    BoDALoss,
    LowRankPrecision,
    boda_loss,
    contrast,
    distances,
    negatives,
    rescaled_boda_loss,
    statistics,
)
from crosstail.losses.distances import matched_distances

DOMAINS, CLASSES, FEATURES, BATCH = 3, 4, 5, 6


def problem(absent: int = 0, seed: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Features, classes, domains, centroids and counts; the first `absent` pairs have no samples, and NaN as mean."""
    generator = torch.Generator().manual_seed(seed)
    z = torch.randn(BATCH, FEATURES, generator=generator, dtype=torch.float64, requires_grad=True)
    y, domain = torch.arange(BATCH) % CLASSES, torch.arange(BATCH) % DOMAINS
    centroids = torch.randn(DOMAINS, CLASSES, FEATURES, generator=generator, dtype=torch.float64)
    counts = torch.randint(1, 9, (DOMAINS, CLASSES), generator=generator)
    counts.view(-1)[:absent], centroids.view(-1, FEATURES)[:absent] = 0, math.nan
    return z, y, domain, centroids, counts


def by_hand(given: tuple[Tensor, ...], drawn: list[int], nu: float) -> list[tuple[float, float]]:
    """For each sample: the estimate of the denominator of equation (3), and its mean logit over the positives."""
    z, y, domain, centroids, counts = given
    present = [p for p in range(DOMAINS * CLASSES) if counts.view(-1)[p] > 0]
    found = []
    for i in range(len(z)):
        n_own = max(1, int(counts[domain[i], y[i]]))
        positives = [d * CLASSES + int(y[i]) for d in range(DOMAINS) if d != domain[i]]
        positives = [p for p in positives if p in present]

        def logit(p: int, i: int = i, n_own: int = n_own) -> float:
            mean, n = centroids.view(-1, FEATURES)[p].tolist(), int(counts.view(-1)[p])
            distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(z[i].tolist(), mean, strict=True)))
            return -((n / n_own) ** nu) * distance / n_own

        denominator = sum(math.exp(logit(p)) for p in positives)
        for p in drawn:
            if p in present and p % CLASSES != y[i]:
                denominator += len(present) / len(drawn) * math.exp(logit(p))
        found.append((denominator, sum(map(logit, positives)) / max(1, len(positives)) if positives else math.nan))
    return found


def fix_draw(monkeypatch: pytest.MonkeyPatch, drawn: list[int]) -> None:
    """The next draws take these pairs."""
    keys = torch.zeros(DOMAINS * CLASSES)
    keys[drawn] = 1.0
    monkeypatch.setattr(negatives.torch, "rand", lambda size: keys)


@pytest.mark.parametrize("absent", [0, 3])
@pytest.mark.parametrize("nu", [0.0, 1.0])
def test_the_denominator_is_unbiased_over_all_draws(nu: float, absent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Equation (3) with loops, for each of the sets that can be drawn; their mean is the exact denominator."""
    given = problem(absent)
    present = range(absent, DOMAINS * CLASSES)
    exact = by_hand(given, list(present), nu)
    total = [0.0] * BATCH
    draws = list(itertools.combinations(present, 3))
    for drawn in draws:
        fix_draw(monkeypatch, list(drawn))
        found = boda_loss(*given, nu=nu, negatives=3, reduction="none").tolist()
        for i, (denominator, pull) in enumerate(by_hand(given, list(drawn), nu)):
            expected = 0.0 if math.isnan(pull) else math.log(denominator) - pull
            assert found[i] == pytest.approx(expected, abs=1e-9)
            total[i] += denominator / len(draws)
    assert total == pytest.approx([denominator for denominator, _ in exact])


@pytest.mark.parametrize("options", [{}, {"balanced": False}, {"pooled": True}, {"reduction": "sum"}])
@pytest.mark.parametrize("loss", [boda_loss, rescaled_boda_loss])
def test_as_many_as_there_are_is_exact(loss: Any, options: dict[str, Any]) -> None:
    given = problem(absent=2)
    exact = loss(*given, **options)
    for enough in (12, 1000, 10 if not options.get("pooled") else 12):  # with pooled means, every pair is present
        assert torch.equal(loss(*given, negatives=enough, **options), exact)


@pytest.mark.parametrize("loss", [boda_loss, rescaled_boda_loss])
def test_bias_and_spread_shrink_with_the_number_drawn(loss: Any) -> None:
    """Against the exact loss and gradient: half the relative variance of the denominator too small, on average."""
    torch.manual_seed(0)
    z, y, domain = torch.randn(8, 6, requires_grad=True), torch.randint(100, (8,)), torch.arange(8) % 4
    given = (z, y, domain, torch.randn(4, 100, 6), torch.randint(1, 5, (4, 100)))

    def value_and_gradient(**options: Any) -> Tensor:
        value = loss(*given, **options)
        return torch.cat([value.detach().view(1), torch.autograd.grad(value, z)[0].flatten()])

    exact = value_and_gradient()
    errors = {}
    for number in (20, 80, 320):
        runs = torch.stack([value_and_gradient(negatives=number) for _ in range(200)])
        errors[number] = (runs.mean(0) - exact, runs.std(0))
    for few, many in ((20, 80), (80, 320)):
        assert errors[many][1][0] < 0.7 * errors[few][1][0]  # the spread of the value: 1 / √4 or less
        assert errors[many][1][1:].norm() < 0.7 * errors[few][1][1:].norm()
    bias = errors[20][0]
    assert -0.1 < bias[0] < 0.0  # too small, as for any concave function of an unbiased estimate
    assert abs(errors[320][0][0]) < 0.005
    # The mean gradient points where the exact one does.
    mean = exact[1:] + bias[1:]
    assert torch.cosine_similarity(mean, exact[1:], dim=0) > 0.98
    assert torch.cosine_similarity(exact[1:] + errors[320][0][1:], exact[1:], dim=0) > 0.999


def test_gradient_against_finite_differences(monkeypatch: pytest.MonkeyPatch) -> None:
    z, *rest = problem(absent=2)
    centroids = torch.nan_to_num(rest[2]).requires_grad_()
    fix_draw(monkeypatch, [3, 5, 8, 9])

    def loss(z: Tensor, centroids: Tensor) -> Tensor:
        return boda_loss(z, rest[0], rest[1], centroids, rest[3], negatives=4)

    assert torch.autograd.gradcheck(loss, (z, centroids))


@pytest.mark.parametrize("form", ["none", "diagonal", "low_rank", "full"])
@pytest.mark.parametrize("size", [1.0, 1e-25, 1e25])
def test_matched_distances(form: str, size: float) -> None:
    torch.manual_seed(0)
    z, own = torch.randn(3, 4), torch.randn(6, 4)
    own[0] = z[0]
    root = torch.randn(6, 4, 4)
    full = root @ root.mT + torch.eye(4)
    precision: Any = {"none": None, "diagonal": torch.rand(6, 4) + 0.5, "full": full}.get(form)
    dense = [torch.eye(4)] * 6 if precision is None else [torch.diag(p) if p.ndim == 1 else p for p in precision]
    if form == "low_rank":
        precision = LowRankPrecision(torch.ones(6, 4) + torch.rand(6, 4), 0.1 * root[..., :2])
        dense = [torch.diag(a) - w @ w.T for a, w in zip(*precision, strict=True)]
    scaled = (size * z).requires_grad_()
    found = matched_distances(scaled, size * own, precision)
    for i, k in itertools.product(range(3), range(2)):
        delta = (z[i] - own[2 * i + k]).double()
        expected = size * float(delta @ dense[2 * i + k].double() @ delta) ** 0.5
        assert found[i, k].item() == pytest.approx(expected, rel=1e-5)
    assert torch.isfinite(torch.autograd.grad(found.sum(), scaled)[0]).all()  # also at distance 0


def test_the_same_seed_draws_the_same() -> None:
    given, losses = problem(), []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        losses.append(boda_loss(*given, negatives=4).item())
    assert losses[0] == losses[1] != losses[2]


def test_a_negative_number_is_refused() -> None:
    with pytest.raises(ValueError, match="-1"):
        boda_loss(*problem(), negatives=-1)


class Created(TorchDispatchMode):
    """Remembers the size of the largest tensor that is no view of a known one."""

    def __init__(self, *known: Tensor) -> None:
        super().__init__()
        self.known, self.numel = {value.untyped_storage().data_ptr() for value in known}, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in result if isinstance(result, tuple | list) else (result,):
            if isinstance(value, Tensor) and value.untyped_storage().data_ptr() not in self.known:
                self.numel = max(self.numel, value.numel())
        return result


@pytest.mark.parametrize("device", [False, True])
def test_a_step_creates_nothing_of_the_size_of_all_centroids(device: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all pairs, a step of the module reads the counts, and the statistics of those in the batch and those drawn."""
    if device:
        for module in (contrast, distances, negatives, statistics):
            monkeypatch.setattr(module, "on_host", lambda values: False)
    pairs, features = 4 * 5_000, 8
    criterion = BoDALoss(4, 5_000, features, torch.ones(4, 5_000), negatives=32, validate=False)
    z, y, domain = torch.randn(16, features, requires_grad=True), torch.arange(16), torch.arange(16) % 4
    with Created(criterion.statistics.mean) as created:
        criterion(z, y, domain).backward()
        criterion(z, y, domain).backward()
    assert created.numel == pairs
