"""Pooled means as a classifier: against loops and dense formulas, cross-validation, properties and bad input."""

import math
import resource
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis

from crosstail.second_stages import Features, Rows, _pooling, find, pooled
from crosstail.second_stages._pooling import Parameters, Pooling


def dense(means, counts, domain, label, pair):
    """Posterior means (D, C, R) and variances (D, C) from the covariance over pairs, with m flat."""
    pairs = list(np.ndindex(counts.shape))
    k = np.array(
        [[domain * (d == e) + label * (c == b) + pair * (d == e and c == b) for e, b in pairs] for d, c in pairs]
    )
    present = [i for i, at in enumerate(pairs) if counts[at]]
    precision = np.linalg.inv(k[np.ix_(present, present)] + np.diag([1 / counts[pairs[i]] for i in present]))
    seen, h = np.array([means[pairs[i]] for i in present]), k[:, present] @ precision
    m = (precision @ seen).sum(0) / precision.sum()
    v = (k - h @ k[present]).diagonal() + (1 - h.sum(1)) ** 2 / precision.sum()
    return (m + h @ (seen - m)).reshape(means.shape), v.reshape(counts.shape)


def moments(z, y, domain, shape):
    """Counts and means of pairs and the covariance within them, sample by sample."""
    counts, sums = np.zeros(shape), np.zeros((*shape, z.shape[1]))
    for row, c, d in zip(z, y, domain, strict=True):
        counts[d, c] += 1
        sums[d, c] += row
    means = sums / np.maximum(counts, 1)[..., None]
    scatter = np.zeros((z.shape[1], z.shape[1]))
    for row, c, d in zip(z, y, domain, strict=True):
        scatter += np.outer(row - means[d, c], row - means[d, c])
    return counts, means, scatter / (counts.sum() - (counts > 0).sum())


def pair_scores(train, z, given):
    """T (log N(z; μ, Σ) − log N(z; 0, Σ) + ½ s v tr) of every pair (N, D, C): what all pairs share is left out."""
    counts, means, within = moments(*train)
    values, vectors = np.linalg.eigh(within)
    shrinkage, domain, label, pair, bonus, temperature = map(float, given)
    covariance = vectors @ np.diag((1 - shrinkage) * values + shrinkage * values.mean()) @ vectors.T
    mu, v = dense(means, counts, domain, label, pair)
    trace = np.trace(np.linalg.solve(covariance, within))
    scores = np.empty((len(z), *counts.shape))
    common = multivariate_normal(np.zeros(z.shape[1]), covariance).logpdf(z)
    for d, c in np.ndindex(counts.shape):
        density = multivariate_normal(mu[d, c], covariance).logpdf(z)
        scores[:, d, c] = temperature * (density - common + 0.5 * bonus * v[d, c] * trace)
    return scores


def log_softmax(scores):
    return scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)


def projected(features, pooling):
    """The sample in the order of the rows, by the head's projection in float64."""
    z = features.z.astype(float)
    if pooling.rooted:
        z = np.sqrt(z)
        z *= math.sqrt(z.shape[1]) / np.array([[math.hypot(*row)] for row in z])
    return (z - pooling.center.double().numpy()) @ pooling.basis.double().numpy()


def flat(features):
    """All features at 0 or above, which are then rooted."""
    return replace(features, z=np.abs(features.z))


@pytest.mark.parametrize("at_once", [1, 9, 4_096], ids="{} pairs at once".format)
@pytest.mark.parametrize("prepare", [lambda f: f, flat], ids=["signed", "rooted"])
def test_scores_are_densities_of_all_pairs_summed_over_domains(features, scores, prepare, at_once, monkeypatch):
    monkeypatch.setattr(pooled, "AT_ONCE", at_once)
    features = prepare(features)
    head = pooled.PooledHead(*features.sizes)
    pooling, given, _ = pooled.fit_pooled(features, head)
    assert pooling.rooted == bool(head.root) == (prepare is flat)
    z = projected(features, pooling)
    by_pair = pair_scores((z, features.y, features.domain, (3, 4)), z, given)
    expected = log_softmax(np.logaddexp.reduce(by_pair, axis=1))
    np.testing.assert_allclose(scores(head, features.z), expected, atol=2e-4)
    np.testing.assert_allclose(scores(find("pooled").fit(features), features.z), expected, atol=2e-4)
    elsewhere, known = float(head.elsewhere), np.empty((len(z), 4))
    assert any(elsewhere == pytest.approx(each) for each in pooled.ELSEWHERE)
    for i, c in np.ndindex(known.shape):
        shares = [elsewhere / 3 + (1 - elsewhere) * (d == features.domain[i]) for d in range(3)]
        known[i, c] = np.logaddexp.reduce([math.log(shares[d]) + by_pair[i, d, c] for d in range(3)])
    np.testing.assert_allclose(scores(head, features.z, features.domain), log_softmax(known), atol=2e-4)


@pytest.mark.parametrize("rank", [400, 3], ids=["all components", "three components"])
@pytest.mark.parametrize("prepare", [lambda f: f, flat], ids=["signed", "rooted"])
def test_distances_are_from_the_nearest_mean_with_the_components_that_are_not_kept(
    features, prepare, rank, monkeypatch
):
    monkeypatch.setattr(_pooling, "RANK", rank)
    features = prepare(features)
    head = pooled.PooledHead(*features.sizes)
    pooling, given, _ = pooled.fit_pooled(features, head)
    z = projected(features, pooling)
    whole = features.z.astype(float)
    if pooling.rooted:
        whole = np.sqrt(whole) * math.sqrt(whole.shape[1]) / np.sqrt(whole.sum(1, keepdims=True))
    whole -= pooling.center.double().numpy()
    counts, means, within = moments(z, features.y, features.domain, (3, 4))
    values, vectors = np.linalg.eigh(within)
    shrinkage, domain, label, pair, *_ = map(float, given)
    precision = vectors @ np.diag(1 / ((1 - shrinkage) * values + shrinkage * values.mean())) @ vectors.T
    mu, _ = dense(means, counts, domain, label, pair)
    left = np.array([(row**2).sum() - (kept**2).sum() for row, kept in zip(whole, z, strict=True)])
    spare = whole.shape[1] - z.shape[1]
    rest = left / (left.mean() / spare) if spare else 0 * left
    found = (
        head.distance_to_training(torch.from_numpy(features.z)),
        head.distance_to_training(*map(torch.from_numpy, (features.z, features.domain))),
    )
    for i, row in enumerate(z):
        each = np.array([[(row - m) @ precision @ (row - m) for m in of_domain] for of_domain in mu])
        for near, own in zip(found, (each.min(), each[features.domain[i]].min()), strict=True):
            assert float(near[i]) == pytest.approx(math.sqrt((own + rest[i]) / whole.shape[1]), rel=2e-3)


class TestCrossValidation:
    def test_without_a_fold_are_the_statistics_of_the_others(self, features):
        pooling = Pooling(features)
        z = projected(features, pooling)
        for k in (*range(5), None):
            rows = np.flatnonzero(pooling.fold != k)
            counts, means, within = moments(z[rows], features.y[rows], features.domain[rows], (3, 4))
            found = pooling.statistics(without=k)
            assert (found.counts.view(3, 4).numpy() == counts).all()
            np.testing.assert_allclose(found.means @ found.vectors.T, means.reshape(12, -1), atol=1e-5)
            np.testing.assert_allclose(found.vectors * found.values @ found.vectors.T, within, atol=1e-5)

    def test_every_sample_is_held_out_once_if_its_class_can_be_learnt(self, draw):
        counts = [[9, 1, 6], [7, 0, 6]]  # the only sample of class 1 cannot be predicted from the others
        features = draw(counts)
        pooling = Pooling(features)
        held = list(pooling.folds())
        judged = torch.cat([pooling.y[fold.rows] for fold in held])
        assert torch.bincount(judged, minlength=3).tolist() == [16, 0, 12]
        rows = torch.cat([fold.rows for fold in held])
        assert len(rows.unique()) == len(rows) == 28
        assert sum(float(fold.weights.sum()) for fold in held) == pytest.approx(4)  # pairs that are judged
        for fold in held:
            assert (fold.statistics.counts >= 0).all() and float(fold.statistics.counts.sum()) == 29 - fold.held.sum()
            assert set(fold.rows.tolist()) <= set(torch.nonzero(fold.held)[:, 0].tolist())
            np.testing.assert_array_equal(fold.y, features.y[pooling.rows[fold.rows]])

    def test_groups_stay_whole(self, features):
        group = np.arange(len(features.y)) // 3
        pooling = Pooling(replace(features, group=group))
        for g in range(group.max() + 1):
            assert len(set(pooling.fold[group == g])) == 1

    @pytest.mark.parametrize("kind", ["absent", "domains"])
    def test_whole_pairs_and_domains_are_predicted_from_the_others(self, features, kind):
        """The means of held-out pairs may be anything; only the covariance is of all samples."""
        pooling = Pooling(features)
        held = list(pooling.absent(0) if kind == "absent" else pooling.domains())
        given, seen = Parameters.of(torch.zeros(6, dtype=torch.float64)), set()
        for one in held:
            left = one.statistics.counts.view(3, 4).numpy()
            mine = {(d, c) for d, c in np.ndindex(3, 4) if features.counts[d, c] and not left[d, c]}
            assert all(left[d, c] in (0, features.counts[d, c]) for d, c in np.ndindex(3, 4))
            judged = set(zip(one.domain.tolist(), one.y.tolist(), strict=True))
            assert judged <= mine and (kind == "absent" or len({d for d, _ in mine}) == 1)
            assert (left.sum(0)[one.y] > 0).all()
            spoilt = one.statistics._replace(
                means=torch.where(one.statistics.counts[:, None] > 0, one.statistics.means, 9e9)
            )
            for found, expected in zip(spoilt.linear(given, (3, 4)), one.statistics.linear(given, (3, 4)), strict=True):
                torch.testing.assert_close(found, expected)
            seen |= judged
        present = {(d, c) for d, c in np.ndindex(3, 4) if features.counts[d, c]}
        assert seen == present if kind == "domains" else seen and seen <= present
        assert kind == "domains" or float(held[0].weights[0]) * features.counts[
            int(held[0].domain[0]), int(held[0].y[0])
        ] == pytest.approx(2 / 10)

    def test_nothing_is_held_out_that_has_no_counterpart(self, draw, features):
        assert not list(Pooling(draw([[9, 8], [7, 6]])).absent(0))
        assert not list(Pooling(draw([[9, 8]])).domains())
        unseen, none = pooled.holdouts(Pooling(features), replace(features, unseen=True))
        assert len(unseen) == 3 and not none

    def test_the_parameters_have_a_smaller_loss_than_where_they_started(self, draw):
        features = draw([[40, 12, 3, 5], [2, 30, 9, 0], [5, 0, 60, 8]], num_features=12)
        pooling = Pooling(features)
        held = [fold for kind in pooled.holdouts(pooling, features) for fold in kind]
        start, z = Parameters.of(torch.zeros(6, dtype=torch.float64)), projected(features, pooling)

        def loss(given):
            """By loops, over folds only."""
            total, weight = 0.0, 0.0
            sizes = moments(z, features.y, features.domain, (3, 4))[0]
            for k in range(5):
                rest, own = (np.flatnonzero(choice) for choice in (pooling.fold != k, pooling.fold == k))
                by_pair = pair_scores((z[rest], features.y[rest], features.domain[rest], (3, 4)), z[own], given)
                said = log_softmax(np.logaddexp.reduce(by_pair, axis=1))
                for i, row in enumerate(own):
                    total -= said[i, features.y[row]] / sizes[features.domain[row], features.y[row]]
                    weight += 1 / sizes[features.domain[row], features.y[row]]
            return total / weight

        def product(given, held):
            total = sum(
                float(_pooling.log_loss(one.scores(given, (3, 4)).logsumexp(1), one.y, one.weights)) for one in held
            )
            return total / sum(float(one.weights.sum()) for one in held)

        folds = list(pooling.folds())
        assert product(start, folds) == pytest.approx(loss(start), abs=1e-4)
        chosen = pooling.choose(folds)
        assert loss(chosen) == pytest.approx(product(chosen, folds), abs=1e-4) and loss(chosen) < loss(start) - 0.01
        assert product(pooling.choose(held), held) < product(start, held)

    def test_the_share_of_other_domains_is_the_best_of_those_tried(self, features):
        head = pooled.PooledHead(*features.sizes)
        _, given, judged = pooled.fit_pooled(features, head)
        losses = []
        for elsewhere in pooled.ELSEWHERE:
            total = 0.0
            for one in judged:
                by_pair = one.scores(given, (3, 4)).numpy()
                for i, d, weight in zip(range(len(by_pair)), one.domain.tolist(), one.weights.tolist(), strict=True):
                    shares = np.array([elsewhere / 3 + (1 - elsewhere) * (e == d) for e in range(3)])
                    said = np.log((shares[:, None] * np.exp(by_pair[i] - by_pair[i].max())).sum(0))
                    total -= weight * (said[one.y[i]] - np.logaddexp.reduce(said))
            losses.append(total)
        assert float(head.elsewhere) == pytest.approx(pooled.ELSEWHERE[int(np.argmin(losses))])
        unseen = find("pooled").fit(replace(features, unseen=True))
        assert float(unseen.elsewhere) == 1


STAGES = ["pooled", "blend"]


@pytest.mark.parametrize(
    ("stage", "scale", "prepare"),
    [("pooled", 1e6, lambda f: f), ("pooled", 1e-12, flat), ("blend", 1e6, flat), ("blend", 1e-12, lambda f: f)],
)
def test_the_scale_of_the_features_does_not_matter(features, scores, stage, scale, prepare):
    features = prepare(features)
    other = replace(features, z=(scale * features.z).astype(np.float32))
    expected, found = (scores(find(stage).fit(each), each.z) for each in (features, other))
    np.testing.assert_allclose(np.exp(log_softmax(found)), np.exp(log_softmax(expected)), atol=5e-3)


@pytest.mark.parametrize("stage", STAGES)
class TestProperties:
    @pytest.mark.parametrize("counts", [[[30, 8, 1, 4], [3, 12, 5, 20], [6, 6, 2, 9]], [[30, 0, 3], [2, 9, 8]]])
    def test_names_of_domains_and_classes_do_not_matter(self, draw, scores, stage, counts):
        features = draw(counts)
        d, c = np.roll(np.arange(len(counts)), 1), np.array([1, 3, 0, 2] if len(counts) == 3 else [2, 0, 1])
        moved = np.empty_like(features.counts)
        moved[np.ix_(d, c)] = features.counts
        renamed = replace(features, y=c[features.y], domain=d[features.domain], counts=moved)
        plain, other = (find(stage).fit(each) for each in (features, renamed))
        z = draw(np.full((3, 4), 5), seed=5).z
        for known in (None, np.arange(60) % len(d)):
            expected = scores(plain, z, known)
            found = scores(other, z, None if known is None else d[known])
            np.testing.assert_allclose(np.exp(found[:, c]), np.exp(expected), atol=5e-3)

    def test_a_class_without_training_samples_is_never_predicted(self, features, scores, stage):
        kept = features.keep(np.flatnonzero(features.y != 2))
        kept = replace(kept, counts=np.where(np.arange(4) == 2, 0, features.counts))
        z = 10 * np.random.default_rng(0).normal(size=(500, 5))
        head = find(stage).fit(kept)
        for known in (None, np.arange(500) % 3):
            found = scores(head, z, known)
            assert np.isfinite(found).all() and not (found.argmax(1) == 2).any()

    def test_a_pair_without_samples_is_predicted_all_the_same(self, draw, scores, stage):
        counts = np.array([[40, 30, 0, 35], [30, 0, 40, 20], [25, 30, 35, 30]])
        test = draw(np.full((3, 4), 50), seed=9)
        said = scores(find(stage).fit(draw(counts)), test.z).argmax(1)
        for d, c in np.argwhere(counts == 0):
            own = (test.domain == d) & (test.y == c)
            assert (said[own] == c).mean() > 0.4

    def test_features_in_a_file_are_those_in_memory(self, features, scores, stage):
        expected = scores(find(stage).fit(features), features.z)
        rows = np.random.default_rng(0).permutation(len(features.z))
        shuffled = np.empty_like(features.z)
        shuffled[rows] = features.z
        lazy = find(stage).fit(replace(features, z=Rows(shuffled, rows)))
        np.testing.assert_allclose(scores(lazy, features.z), expected, atol=1e-5)

    def test_an_empty_head_takes_the_weights(self, features, scores, stage):
        head, empty = find(stage).fit(features), find(stage).head(*features.sizes)
        empty.load_state_dict(head.state_dict())
        for known in (None, features.domain):
            np.testing.assert_array_equal(scores(empty, features.z, known), scores(head, features.z, known))


def test_part_by_part_has_the_statistics_of_the_whole(features, monkeypatch):
    whole = Pooling(features)
    monkeypatch.setattr(_pooling, "PART", 7)
    monkeypatch.setattr(_pooling, "SAMPLE", 60)
    few = Pooling(features)
    assert len(few.rows) == 60 < len(features.y)
    taken = np.bincount(features.pair[few.rows], minlength=12)
    assert (taken[taken < features.counts.ravel()] >= taken.max() - 1).all()  # of every pair in turn
    assert torch.equal(few.whole.counts, whole.whole.counts)
    z = projected(features, few)
    _, means, within = moments(z, features.y, features.domain, (3, 4))
    found = few.whole
    np.testing.assert_allclose(found.means @ found.vectors.T, means.reshape(12, -1), atol=1e-5)
    np.testing.assert_allclose(found.vectors * found.values @ found.vectors.T, within, atol=1e-5)


def test_with_few_scores_in_memory_fewer_samples_are_judged(features, monkeypatch):
    monkeypatch.setattr(_pooling, "SCORES", 12 * 30)
    pooling = Pooling(features)
    assert pooling.judged == 30 and sum(len(fold.rows) for fold in pooling.folds()) <= 30
    assert len(pooling.z) == len(features.y)  # balanced softmax is trained on all of them


def test_one_domain_is_shrunken_lda(draw):
    """With a wide prior, no bonus and T = 1; the classes have the same size, as scikit-learn averages covariances."""
    features = draw([[60, 60, 60]])
    pooling = Pooling(features)
    one = torch.tensor(1.0, dtype=torch.float64)
    given = Parameters(0.3 * one, one, 1e9 * one, 1e9 * one, 0 * one, one)
    weight, bias = pooling.whole.linear(given, (1, 3))
    z = projected(features, pooling)

    class Shrunk:
        """The covariance of a class, shrunk towards a multiple of the identity."""

        def fit(self, x):
            covariance = np.cov(x, rowvar=False)
            self.covariance_ = 0.7 * covariance + 0.3 * np.trace(covariance) / len(covariance) * np.eye(len(covariance))

    theirs = LinearDiscriminantAnalysis(solver="lsqr", covariance_estimator=Shrunk()).fit(z, features.y)
    found = z @ (weight @ pooling.whole.vectors.T).numpy().T + bias.numpy()
    np.testing.assert_allclose(log_softmax(found), theirs.predict_log_proba(z), atol=1e-4)


def test_a_frequent_pair_keeps_its_mean_and_a_missing_one_is_additive(draw):
    features = draw(np.array([[4000, 4000], [4000, 0]]))
    pooling = Pooling(features)
    one = torch.tensor(1.0, dtype=torch.float64)
    given = Parameters(0.1 * one, 1e4 * one, 1e4 * one, 0.001 * one, 0 * one, one)
    weight, _ = pooling.whole.linear(given, (2, 2))
    shrunk = 0.9 * pooling.whole.values + 0.1 * pooling.whole.values.mean()
    mu = (weight * shrunk).view(2, 2, -1)
    own = pooling.whole.means.view(2, 2, -1)
    torch.testing.assert_close(mu[0, 0], own[0, 0], atol=0.05, rtol=0)
    additive = own[0, 1] + own[1, 0] - own[0, 0]
    torch.testing.assert_close(mu[1, 1], additive, atol=0.1, rtol=0)


BAD = {
    "one domain": [[9, 4, 7]],
    "one class in a domain": [[9, 0, 0], [3, 5, 8]],
    "one class overall": [[9], [4]],
    "a pair with one sample": [[9, 1, 5], [4, 6, 1]],
    "every pair with one sample": [[1, 1, 1], [1, 1, 1]],
    "two samples": [[1, 1]],
    "two samples of one class": [[2]],
    "two samples in two domains": [[1, 0], [0, 1]],
    "one sample": [[1, 0]],
    "a domain without samples": [[9, 4], [0, 0], [5, 8]],
    "each class in a domain of its own": [[9, 0], [0, 8]],
}


@pytest.mark.parametrize("unseen", [False, True])
@pytest.mark.parametrize("stage", STAGES)
class TestBadInput:
    def check(self, features, scores, stage, unseen, expected=None):
        head = find(stage).fit(replace(features, unseen=unseen))
        for known in (None, features.domain):
            found = scores(head, features.z, known)
            assert np.isfinite(found).all()
            present = np.flatnonzero(features.counts.sum(0))
            assert set(found.argmax(1)) <= set(present)
            assert expected is None or (found.argmax(1) == features.y).mean() >= expected
        return head

    @pytest.mark.parametrize("name", BAD)
    def test_small_tables(self, draw, scores, stage, unseen, name):
        features = draw(BAD[name])
        nothing_is_shared = len(features.counts) > 1 and (features.counts > 0).sum(0).max() == 1
        expected = None if nothing_is_shared else 0.5 if unseen else 0.8
        head = self.check(features, scores, stage, unseen, expected)
        assert all(bool(value.isfinite().all()) for value in head.state_dict().values())

    def test_fewer_samples_than_features(self, draw, scores, stage, unseen):
        self.check(draw([[3, 2], [2, 3]], num_features=700), scores, stage, unseen, expected=1)

    def test_constant_features(self, features, scores, stage, unseen):
        some = features.z.copy()
        some[:, 2:] = 3.0
        self.check(replace(features, z=some), scores, stage, unseen)
        for value in (0.0, -2.0, 5.0):
            head = self.check(replace(features, z=np.full_like(features.z, value)), scores, stage, unseen)
            found = scores(head, features.z)
            np.testing.assert_allclose(found, np.tile(found[0], (len(found), 1)), atol=1e-5)

    def test_duplicate_rows_and_a_row_of_zeros(self, features, scores, stage, unseen):
        same = replace(features, z=np.repeat(features.z[::7], 7, axis=0)[: len(features.z)])
        self.check(same, scores, stage, unseen)
        zeros = np.abs(features.z)
        zeros[3] = 0
        self.check(replace(features, z=zeros), scores, stage, unseen, expected=0.5)


@pytest.mark.parametrize(
    ("shape", "most", "gigabytes"),
    [((600, 30), 4_000_000, 1), pytest.param((300, 345), _pooling.SCORES, 2, marks=pytest.mark.storm)],
)
def test_many_pairs_need_no_table_of_pairs_by_pairs(scores, monkeypatch, shape, most, gigabytes):
    monkeypatch.setattr(_pooling, "SCORES", most)
    rng = np.random.default_rng(0)
    domain, y = np.divmod(np.repeat(np.arange(math.prod(shape)), 2), shape[1])
    centres, moves = 3 * rng.normal(size=(shape[1], 32)), rng.normal(size=(shape[0], 32))
    z = (centres[y] + moves[domain] + rng.normal(size=(len(y), 32))).astype(np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    head = find("blend").fit(Features(z, y, domain, np.full(shape, 2)))
    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert used < gigabytes * 2**20  # KiB; a table would have 2.4 or 80 GiB
    new = rng.permutation(len(y))[:200]
    moved = (centres[y[new]] + moves[domain[new]] + rng.normal(size=(200, 32))).astype(np.float32)
    for known in (None, domain[new]):
        assert (scores(head, moved, known).argmax(1) == y[new]).mean() > 0.98
