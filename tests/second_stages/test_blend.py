"""The blend: balanced softmax and the shares against loops and other optimisers, on samples that neither has seen."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from crosstail.second_stages import blend, find, pooled
from crosstail.second_stages._pooling import Pooling
from crosstail.second_stages.blend import BalancedSoftmax, BlendHead, blend_shares


def objective(weight, bias, z, y, domain, counts, penalty):
    """The mean over domains of the mean over their samples, plus the penalty, by loops."""
    trained = [d for d in range(len(counts)) if sum(counts[d])]
    total = 0.5 * penalty * sum(w * w for row in weight for w in row)
    for i in range(len(z)):
        n = counts[domain[i]]
        scores = {c: float(weight[c] @ z[i]) + bias[c] + math.log(n[c]) for c in range(len(n)) if n[c]}
        highest = max(scores.values())
        entropy = highest + math.log(sum(math.exp(s - highest) for s in scores.values())) - scores[y[i]]
        total += entropy / sum(n) / len(trained)
    return total


@pytest.mark.parametrize("penalty", blend.PENALTIES)
def test_balanced_softmax_reaches_the_minimum(features, penalty):
    pooling = Pooling(features)
    found = BalancedSoftmax(pooling)
    found.solve(penalty)
    z = pooling.z.numpy() / found.scale
    assert float(pooling.z.std()) == pytest.approx(found.scale)
    own = z, pooling.y.tolist(), pooling.domain.tolist(), features.counts.tolist(), penalty

    def loss(both):
        return objective(both[:20].reshape(4, 5), both[20:], *own)

    reached = loss(np.concatenate([found.weight.numpy().ravel(), found.bias.numpy()]).astype(float))
    best = minimize(loss, np.zeros(24), options={"gtol": 1e-4})
    assert reached == pytest.approx(best.fun, abs=1e-5)
    expected = z @ best.x[:20].reshape(4, 5).T + best.x[20:]
    expected = np.exp(expected) / np.exp(expected).sum(1, keepdims=True)
    np.testing.assert_allclose(found.log_probabilities(pooling.z).exp(), expected, atol=0.01)


def test_without_some_samples_it_neither_sees_nor_counts_them(features):
    pooling = Pooling(features)
    held = torch.arange(len(pooling.y)) % 5 == 0
    whole = BalancedSoftmax(pooling, held)
    whole.solve(0.1)
    spoilt = Pooling(features)
    spoilt.z[held] = 1e3
    spoilt.y[held] = 0
    other = BalancedSoftmax(spoilt, held)
    other.scale, other.z, other.variance = whole.scale, whole.z, whole.variance  # the scale of all samples
    other.solve(0.1)
    torch.testing.assert_close(other.weight, whole.weight)
    torch.testing.assert_close(other.bias, whole.bias)


def test_shares_are_the_minimum_over_both():
    rng = np.random.default_rng(0)
    y, weights = torch.from_numpy(rng.integers(4, size=200)), torch.from_numpy(rng.random(200))
    right = torch.nn.functional.one_hot(y, 4).double()
    pooled_, softmax = ((a * right + torch.from_numpy(rng.normal(size=(200, 4)))).log_softmax(1) for a in (2.0, 1.0))

    def loss(shares):
        total = 0.0
        for i in range(200):
            scores = [float(shares[0] * pooled_[i, c] + shares[1] * softmax[i, c]) for c in range(4)]
            total += float(weights[i]) * (math.log(sum(map(math.exp, scores))) - scores[y[i]])
        return total / float(weights.sum())

    found = blend_shares(pooled_, softmax, y, weights).numpy()
    assert (found > 0).all()
    for step in (0.01, -0.01):
        for i in range(2):
            assert loss(found) < loss(found + step * np.eye(2)[i])
    best = minimize(loss, [0.5, 0.5])
    np.testing.assert_allclose(found, best.x, atol=1e-3)


def test_a_share_is_never_negative():
    rng = np.random.default_rng(1)
    y = torch.from_numpy(rng.integers(3, size=100))
    right = torch.nn.functional.one_hot(y, 3).double()
    good = (2 * right + torch.from_numpy(rng.normal(size=(100, 3)))).log_softmax(1)
    bad, ones = (-3 * right).log_softmax(1), torch.ones(100, dtype=torch.float64)

    def loss(a):
        return float((-(a * good).log_softmax(1)[range(100), y]).mean())

    best = minimize(lambda a: loss(float(a[0])), [0.5]).x
    for given, order in (((good, bad), [0, 1]), ((bad, good), [1, 0])):
        found = blend_shares(*given, y, ones)[order]
        assert found[1] == 0 and float(found[0]) == pytest.approx(float(best[0]), abs=1e-3)


def test_log_probabilities_are_added(features, scores):
    head = find("blend").fit(features)
    a, b = head.shares.tolist()
    alone = pooled.PooledHead(*features.sizes)
    alone.load_state_dict({name: value for name, value in head.state_dict().items() if name in alone.state_dict()})
    z = head.projected(torch.from_numpy(features.z)).numpy()
    linear = z @ head.softmax_weight.numpy().T + head.softmax_bias.numpy()
    linear -= np.logaddexp.reduce(linear, axis=1, keepdims=True)
    for known in (None, features.domain):
        expected = a * scores(alone, features.z, known) + b * linear
        np.testing.assert_allclose(scores(head, features.z, known), expected, atol=1e-4)
    same = find("pooled").fit(features)
    np.testing.assert_array_equal(scores(same, features.z), scores(alone, features.z))


def test_shares_and_penalty_come_from_samples_that_were_held_out(features, monkeypatch):
    """Every judged prediction is made by a classifier that was fitted without the sample."""
    parts, judged = [], []
    real, shares = BalancedSoftmax.log_probabilities, blend_shares

    def spied(self, z):
        parts.append((self, z, real(self, z)))
        return parts[-1][2]

    monkeypatch.setattr(BalancedSoftmax, "log_probabilities", spied)
    monkeypatch.setattr(blend, "blend_shares", lambda *args: judged.append(args) or shares(*args))
    head = find("blend").fit(features)
    assert len(parts) in (10, 15)  # until a weaker penalty is worse
    for classifier, z, _ in parts:
        train = {tuple(row) for row in np.round(classifier.z.numpy(), 4).tolist()}
        assert not train & {tuple(row) for row in np.round((z / classifier.scale).float().numpy(), 4).tolist()}
    ((pooled_, softmax, y, weights),) = judged
    each = [torch.cat([said for _, _, said in parts[i : i + 5]]) for i in range(0, len(parts), 5)]
    losses = [float(-(weights * said[range(len(y)), y]).sum()) for said in each]
    torch.testing.assert_close(softmax, each[int(np.argmin(losses))])
    torch.testing.assert_close(pooled_.exp().sum(1), torch.ones_like(weights))
    torch.testing.assert_close(head.shares, shares(pooled_, softmax, y, weights).float())


def test_for_unseen_domains_whole_domains_are_held_out(features, monkeypatch):
    without = []
    real = BalancedSoftmax.__init__
    monkeypatch.setattr(
        BalancedSoftmax, "__init__", lambda self, pooling, held=None: without.append(held) or real(self, pooling, held)
    )
    find("blend").fit(replace(features, unseen=True))
    domain = Pooling(features).domain
    held = [set(domain[mask].tolist()) for mask in without if mask is not None]
    assert held == [{0}, {1}, {2}]
    assert all(
        not set(domain[~mask].tolist()) & own
        for mask, own in zip([m for m in without if m is not None], held, strict=True)
    )


def test_with_very_many_classes_it_is_pooled(features, monkeypatch, scores):
    monkeypatch.setattr(blend, "MOST_CLASSES", 3)
    heads = [stage.fit(features) for stage in (blend, pooled)]
    np.testing.assert_allclose(*(scores(head, features.z) for head in heads), rtol=1e-5)


def test_without_anything_to_hold_out_it_is_pooled(draw, scores):
    features = draw([[1, 0]])
    head = find("blend").fit(features)
    assert isinstance(head, BlendHead) and head.shares.tolist() == [1, 0]
    np.testing.assert_array_equal(scores(head, features.z).argmax(1), features.y)
