"""Last-layer retraining: the subsets, the regression against a slow oracle, and the mean of both."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize

from crosstail.second_stages import dfr, find


def objective(solution, x, y, weights, penalty):
    """Weighted cross-entropy and the sum of the absolute weights without the biases."""
    total = 0.0
    for i in range(len(x)):
        scores = [sum(x[i][f] * solution[f][c] for f in range(len(x[i]))) for c in range(len(solution[0]))]
        highest = max(scores)
        total += weights[i] * (highest + math.log(sum(math.exp(s - highest) for s in scores)) - scores[y[i]])
    return total + penalty * sum(abs(w) for row in solution[:-1] for w in row)


@pytest.mark.parametrize("penalty", [0.1, 0.003])
def test_the_regression_reaches_the_minimum(penalty):
    rng = np.random.default_rng(0)
    x = np.hstack([rng.normal(size=(14, 3)), np.ones((14, 1))])
    y, weights = np.arange(14) % 3, rng.dirichlet(np.ones(14))
    shape = (4, 3)

    def split(both):  # W = U - V with U, V >= 0 is smooth
        up, down = both.reshape(2, *shape)
        return (
            objective((up - down).tolist(), x.tolist(), y, weights, 0) + penalty * both.reshape(2, *shape)[:, :-1].sum()
        )

    expected = minimize(split, np.zeros(24), bounds=[(0, None)] * 24, method="L-BFGS-B", options={"maxfun": 10**5}).fun
    arrays = x.astype(np.float32), y, weights.astype(np.float32)
    found = dfr.sparse_regression(*arrays, penalty, np.zeros(shape, np.float32))
    assert objective(found.tolist(), x.tolist(), y, weights, penalty) == pytest.approx(expected, abs=5e-4)
    assert penalty == 0.003 or (found[:-1] == 0).any()


def test_a_subset_has_up_to_so_many_samples_of_every_pair(features):
    seen = set()
    for seed in range(60):
        rows = dfr.balanced_subset(features, 5, np.random.default_rng(seed))
        assert len(set(rows.tolist())) == len(rows)
        drawn = Counter(zip(features.domain[rows].tolist(), features.y[rows].tolist(), strict=True))
        assert drawn == {(d, c): min(n, 5) for (d, c), n in np.ndenumerate(features.counts) if n}
        seen |= set(rows.tolist())
    assert seen == set(range(len(features.y)))


def test_the_head_is_the_mean_of_the_regressions_on_standardised_features(features, scores, monkeypatch):
    monkeypatch.setattr(dfr, "DEPTH", 3)
    features = replace(features, validation=None, seed=4)
    rng, n = np.random.default_rng(4), len(features.y)
    mean = [sum(float(z[f]) for z in features.z) / n for f in range(5)]
    deviation = [math.sqrt(sum((float(z[f]) - mean[f]) ** 2 for z in features.z) / n) for f in range(5)]
    solutions = []
    for _ in range(dfr.SUBSETS):
        rows = dfr.balanced_subset(features, 3, rng)
        pairs = Counter(zip(features.domain[rows].tolist(), features.y[rows].tolist(), strict=True))
        weights = [1 / len(pairs) / pairs[features.domain[i], features.y[i]] for i in rows]
        x = [[(float(features.z[i][f]) - mean[f]) / deviation[f] for f in range(5)] + [1.0] for i in rows]
        arrays = np.array(x, np.float32), features.y[rows], np.array(weights, np.float32)
        solutions.append(dfr.sparse_regression(*arrays, dfr.DEFAULT, np.zeros((6, 4), np.float32)))
    standard = np.hstack([(features.z - np.array(mean)) / np.array(deviation), np.ones((n, 1))])
    expected = np.mean([standard @ solution for solution in solutions], axis=0)
    np.testing.assert_allclose(scores(find("dfr").fit(features), features.z), expected, rtol=1e-2, atol=1e-2)


def test_the_penalty_is_the_first_of_the_best_on_validation(features, scores, pair_average, monkeypatch):
    used = []
    real = dfr.sparse_regression

    def spied(x, y, weights, penalty, start):
        used.append((penalty, real(x, y, weights, penalty, start)))
        return used[-1][1]

    monkeypatch.setattr(dfr, "sparse_regression", spied)
    find("dfr").fit(features)
    tried, final = used[: len(dfr.PENALTIES)], used[len(dfr.PENALTIES) :]
    assert [penalty for penalty, _ in tried] == list(dfr.PENALTIES) and len(final) == dfr.SUBSETS
    mean, deviation = features.z.mean(0), features.z.std(0)
    z = np.hstack([(features.validation.z - mean) / deviation, np.ones((len(features.validation.y), 1))])
    reached = [pair_average(z @ solution, features.validation) for _, solution in tried]
    assert {penalty for penalty, _ in final} == {dfr.PENALTIES[reached.index(max(reached))]}


def test_with_very_many_pairs_a_subset_has_fewer_samples_of_each(features, monkeypatch):
    drawn = []
    real = dfr.balanced_subset
    monkeypatch.setattr(dfr, "balanced_subset", lambda *args: drawn.append(args[1]) or real(*args))
    for work, depth in ((10**8, 20), (2 * 10 * 5 * 4, 2), (1, 1)):
        monkeypatch.setattr(dfr, "WORK", work)
        find("dfr").fit(features)
        assert set(drawn) == {depth}
        drawn.clear()
