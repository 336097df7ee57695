"""ERM, BoDA, DA and BoDA-M: their terms against the pieces put together by hand, and how the statistics are kept."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from crosstail import algorithms, backbones
from crosstail.algorithms import Task
from crosstail.data import DomainBatch
from crosstail.losses import PairStatistics, boda_loss, rescaled_boda_loss

COUNTS = [[40, 3, 9], [1, 25, 0]]
FEATURES = 5
FAMILY = ["boda", "da", "boda_m"]


def build(name, **hparams):
    torch.manual_seed(0)
    return algorithms.build(name, backbones.build("mlp", (4,), FEATURES), Task(torch.tensor(COUNTS)), hparams).train()


def make_batch(seed, pairs=((0, 0), (0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 1), (1, 1))):
    generator = torch.Generator().manual_seed(seed)
    domain, y = (torch.tensor(values) for values in zip(*pairs, strict=True))
    return DomainBatch(3 * torch.randn(len(pairs), 4, generator=generator), y, domain)


def losses(algorithm, batch):
    return algorithm.losses(algorithm.backbone(batch.x), batch)


def members(z, batch):
    """{pair: its features in the batch}."""
    found = {}
    for row, y, d in zip(z, batch.y.tolist(), batch.domain.tolist(), strict=True):
        found.setdefault((d, y), []).append(row)
    return {pair: torch.stack(rows) for pair, rows in found.items()}


class MovingStatistics:
    """Mean and variance of every pair by loops: the past counts as at most `remembered` samples."""

    def __init__(self, window):
        self.window, self.mean, self.variance, self.seen = window, {}, {}, {}

    def update(self, z, batch):
        for pair, rows in members(z, batch).items():
            remembered = min(COUNTS[pair[0]][pair[1]], self.window) - 1
            past = min(self.seen.get(pair, 0), remembered)
            share = len(rows) / (past + len(rows))
            mean, variance = rows.mean(0), rows.var(0, correction=0)
            if past:
                old = self.mean[pair]
                between = share * (1 - share) * (mean - old) ** 2
                variance = (1 - share) * self.variance[pair] + share * variance + between
                mean = (1 - share) * old + share * mean
            self.mean[pair], self.variance[pair] = mean, variance
            self.seen[pair] = self.seen.get(pair, 0) + len(rows)

    def centroids(self):
        table = torch.zeros(2, 3, FEATURES)
        for pair, mean in self.mean.items():
            table[pair] = mean
        return table

    def counts(self):
        """Those of the training set, 0 for a pair that no batch has shown yet."""
        return torch.tensor(
            [[n if (d, c) in self.seen else 0 for c, n in enumerate(row)] for d, row in enumerate(COUNTS)]
        )

    def precision(self):
        """1 / ((n v + 10 v̄) / (n + 10)), n the samples remembered, v̄ their mean variance over all pairs."""
        n = {pair: min(seen, min(COUNTS[pair[0]][pair[1]], self.window)) for pair, seen in self.seen.items()}
        pooled = sum(n[pair] * self.variance[pair] for pair in n) / sum(n.values())
        pooled = pooled.clamp_min(1e-3 * float(pooled.mean()) or 1.0)  # 1 where no pair has two samples yet
        table = torch.zeros(2, 3, FEATURES)
        for d, c in np.ndindex(2, 3):
            k = n.get((d, c), 0)
            own = self.variance.get((d, c), torch.zeros(FEATURES))
            table[d, c] = (k + 10) / (k * own + 10 * pooled)
        return table


def test_erm_is_cross_entropy():
    algorithm, batch = build("erm"), make_batch(0)
    scores = algorithm.head(algorithm.backbone(batch.x)).detach()
    terms = losses(algorithm, batch)
    assert list(terms) == ["cross_entropy"]
    by_hand = -sum(float(F.log_softmax(s, 0)[c]) for s, c in zip(scores, batch.y, strict=True)) / len(batch)
    assert terms["cross_entropy"].item() == pytest.approx(by_hand, rel=1e-5)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize("option", ["temperature", "rescaled", "per_positive", "pooled"])
@pytest.mark.parametrize("window", [4, 100])
def test_the_terms_are_cross_entropy_and_the_loss_with_the_statistics_after_the_batch(name, option, window):
    calibration = {} if name == "da" else {"nu": 0.7}
    given = {"temperature": 2.0} if option == "temperature" else {option: True}
    algorithm = build(name, weight=0.3, window=window, warmup=0, **given, **calibration)
    oracle = MovingStatistics(window)
    options = {**calibration, "balanced": name != "da"}
    options |= {
        "temperature": {"temperature": 2.0},
        "rescaled": {},
        "per_positive": {"reduction": "positives"},
        "pooled": {"pooled": True},
    }[option]
    loss = rescaled_boda_loss if option == "rescaled" else boda_loss
    for seed in range(4):
        batch = make_batch(seed) if seed else make_batch(seed, pairs=((0, 0), (0, 2), (1, 0)))
        with torch.no_grad():
            z = algorithm.backbone(batch.x)
            oracle.update(z, batch)
            expected = 0.3 * loss(
                z,
                batch.y,
                batch.domain,
                oracle.centroids(),
                oracle.counts(),
                precision=oracle.precision() if name == "boda_m" else None,
                **options,
            )
            terms = losses(algorithm, batch)
        assert list(terms) == ["cross_entropy", "alignment"]
        assert terms["cross_entropy"].item() == pytest.approx(F.cross_entropy(algorithm.head(z), batch.y).item())
        assert terms["alignment"].item() == pytest.approx(float(expected), rel=1e-4) and float(expected) != 0
        torch.testing.assert_close(algorithm.criterion.statistics.mean, oracle.centroids())


def test_the_three_differ():
    found = [losses(build(name), make_batch(0))["alignment"].item() for name in FAMILY]
    assert len({round(value, 4) for value in found}) == 3


@pytest.mark.parametrize("name", FAMILY)
def test_no_gradient_flows_into_the_statistics(name):
    algorithm = build(name)
    losses(algorithm, make_batch(0))["alignment"].backward()
    assert all(p.grad is not None for p in algorithm.backbone.parameters())
    assert all(p.grad is None for p in algorithm.head.parameters())
    assert not any(buffer.requires_grad for buffer in algorithm.buffers())


@pytest.mark.parametrize("name", FAMILY)
def test_the_term_sets_in_after_the_warmup_and_the_statistics_before(name):
    algorithm, without = build(name, warmup=3), build(name, warmup=0)
    for step in range(5):
        algorithm.step = without.step = step
        found, expected = (losses(a, make_batch(step))["alignment"].item() for a in (algorithm, without))
        assert found == (expected if step >= 3 else 0.0) and expected != 0


def test_refresh_is_due_every_so_many_steps_and_at_the_latest_when_the_term_sets_in():
    for hparams, expected in (
        ({"warmup": 7, "refresh": 10}, [7, 10, 20, 30]),
        ({"warmup": 25, "refresh": 10}, [10, 20, 30]),
        ({"warmup": 0, "refresh": 16}, [0, 16, 32]),
        ({}, []),
    ):
        algorithm = build("boda", **hparams)
        assert [step for step in range(40) if algorithm.refresh_due(step)] == expected
    assert not any(map(build("erm").refresh_due, range(40)))


@pytest.mark.parametrize("name", FAMILY)
def test_with_a_refresh_only_full_passes_change_the_statistics(name):
    algorithm = build(name, refresh=10)
    before = algorithm.criterion.statistics.mean.clone()
    assert losses(algorithm, make_batch(0))["alignment"].item() == 0.0  # no centroid yet
    assert torch.equal(algorithm.criterion.statistics.mean, before)


@pytest.mark.parametrize("name", FAMILY)
@pytest.mark.parametrize(
    ("hparam", "value", "expected"),
    [
        ("weight", -0.1, "0 or more"),
        ("temperature", 0.0, "a number above 0"),
        ("negatives", -1, "0 or more"),
        ("warmup", -3.0, "0 or more"),
        ("window", 0, "1 or more"),
        ("refresh", -1, "0 or more"),
        ("momentum", 5.0, "0 to 1"),
        ("momentum", float("nan"), "0 to 1"),
    ],
)
def test_hyperparameters_that_make_no_sense_are_refused(name, hparam, value, expected):
    with pytest.raises(ValueError, match=f"^{name}: hyperparameter {hparam} is {value}, expected {expected}$"):
        build(name, **{hparam: value})


def test_nu_is_not_negative():
    with pytest.raises(ValueError, match=r"hyperparameter nu is -1\.0, expected 0 or more"):
        build("boda", nu=-1.0)
    build("boda", nu=0, weight=0, warmup=0, momentum=1, window=1)


@pytest.mark.parametrize("name", FAMILY)
def test_refresh_blends_by_the_formula_of_the_paper(name):
    """μ ← m μ + (1 − m) μ of the pass; a new pair is taken as it is, one that the pass did not see is kept."""
    algorithm = build(name, refresh=10, momentum=0.25)
    passes = [
        make_batch(0, pairs=((0, 0), (0, 0), (0, 1), (1, 1))),
        make_batch(1, pairs=((0, 0), (0, 1), (0, 1), (1, 0))),
        make_batch(2, pairs=((0, 0), (0, 0), (1, 1), (1, 0))),
    ]
    mean, variance = {}, {}
    for batch in passes:
        z = algorithm.backbone(batch.x).detach()
        fresh = algorithm.statistics()
        assert isinstance(fresh, PairStatistics) and int(fresh.counts.sum()) == 0
        fresh.update(z, batch.y, batch.domain)
        algorithm.refresh(fresh)
        for pair, rows in members(z, batch).items():
            new = rows.mean(0), rows.var(0, correction=0)
            mean[pair] = 0.25 * mean[pair] + 0.75 * new[0] if pair in mean else new[0]
            variance[pair] = 0.25 * variance[pair] + 0.75 * new[1] if pair in variance else new[1]
    kept = algorithm.criterion.statistics
    for pair in mean:
        torch.testing.assert_close(kept.mean[pair], mean[pair])
        if name == "boda_m":
            torch.testing.assert_close(kept.variance[pair], variance[pair])
    assert {tuple(pair) for pair in (kept.counts > 0).nonzero().tolist()} == set(mean)


@pytest.mark.parametrize("name", ["erm", *FAMILY])
def test_keeping_the_statistics_costs_no_forward_pass(name):
    algorithm, calls = build(name), []
    algorithm.backbone.register_forward_hook(lambda *args: calls.append(1))
    optimizers = algorithm.optimizers()
    for step in range(3):
        algorithm.update(make_batch(step), optimizers, lambda loss: loss.backward())
    assert len(calls) == 3


@pytest.mark.parametrize("name", ["erm", *FAMILY])
def test_one_update_is_one_step_of_adam_on_the_sum_of_the_terms(name):
    algorithm, other = build(name, lr=0.01, weight_decay=0.1), build(name, lr=0.01, weight_decay=0.1)
    terms = algorithm.update(make_batch(0), algorithm.optimizers(), lambda loss: loss.backward())
    adam = torch.optim.Adam(other.parameters(), lr=0.01, weight_decay=0.1)
    sum(losses(other, make_batch(0)).values()).backward()
    adam.step()
    assert all(torch.equal(a, b) for a, b in zip(algorithm.parameters(), other.parameters(), strict=True))
    assert all(np.isfinite(value.item()) for value in terms.values())


@pytest.mark.parametrize("name", ["erm", *FAMILY])
def test_predictions_need_no_domain_and_leave_the_statistics_alone(name):
    algorithm = build(name)
    losses(algorithm, make_batch(0))
    algorithm.eval()
    before = {key: value.clone() for key, value in algorithm.state_dict().items()}
    scores = algorithm(make_batch(1).x)
    assert scores.shape == (8, 3)
    assert all(torch.equal(value, before[key]) for key, value in algorithm.state_dict().items())


def test_an_algorithm_without_losses_is_told_so():
    class Empty(algorithms.Algorithm):
        pass

    empty = Empty(backbones.build("mlp", (4,), FEATURES), Task(torch.tensor(COUNTS)), algorithms.Algorithm.Hparams())
    with pytest.raises(TypeError, match=r"Empty must define losses\(z, batch\)"):
        losses(empty, make_batch(0))


@pytest.mark.parametrize("name", FAMILY)
def test_negatives_are_those_of_the_loss(name):
    batch, found = make_batch(0), []
    for number in (0, 5, 2):  # the batch shows 5 pairs
        algorithm = build(name, warmup=0.0, negatives=number)
        torch.manual_seed(1)
        found.append(losses(algorithm, batch)["alignment"])
    exact, enough, few = found
    assert torch.equal(exact, enough) and not torch.equal(exact, few)
