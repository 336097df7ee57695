import numpy as np
import pytest
import torch
from tests.transfer.test_graph import FULL, HOLES, build, euclidean, mahalanobis, make, oracle_edges, oracle_statistics

from crosstail.transfer import statistics
from crosstail.transfer.statistics import SampledStatistics

TABLES = {
    "full": FULL,
    "holes": HOLES,
    "single classes": [[2, 0, 0], [0, 3, 0], [1, 0, 0], [2, 2, 1]],
    "one shared class": [[2, 0], [3, 0], [0, 0]],
    "one domain": [[2, 3, 1]],
    "nothing shared": [[2, 0, 0, 1], [0, 3, 0, 0], [0, 0, 2, 0]],
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(("metric", "distance"), [("euclidean", euclidean), ("mahalanobis", mahalanobis)])
def test_many_draws_give_definition_3(name, metric, distance, monkeypatch):
    counts = TABLES[name]
    data = make(counts)
    expected = oracle_statistics(oracle_edges(*data, distance), *np.shape(counts))
    monkeypatch.setattr(SampledStatistics.__init__, "__defaults__", (None, 4000))
    found = build(*data, counts, metric=metric, most_pairs=1)
    assert found.estimate is not None
    for value, error, exact in zip(found.statistics, found.standard_errors, expected, strict=True):
        assert np.isnan(value) == np.isnan(exact)
        if not np.isnan(exact):
            assert abs(value - exact) <= 4 * error + 1e-5 * exact
            assert error < 0.02 * exact


@pytest.fixture(scope="module")
def large():
    """300 pairs, some of them absent."""
    random = np.random.default_rng(0)
    counts = random.integers(1, 9, (6, 60)) * (random.random((6, 60)) < 0.83)
    return counts, make(counts, num_features=8)


def test_the_standard_error_covers_the_exact_value(large, monkeypatch):
    """Two standard errors cover 95 % of estimates from different draws, and their spread is as large as they say."""
    counts, data = large
    assert np.count_nonzero(counts) > 290
    exact = np.array(build(*data, counts).statistics)
    generator, values, errors = np.random.default_rng, [], []
    for seed in range(60):
        monkeypatch.setattr(statistics.np.random, "default_rng", lambda kind, seed=seed: generator([kind, seed]))
        found = build(*data, counts, most_pairs=100)
        values.append(found.statistics)
        errors.append(found.standard_errors)
    values, errors = np.array(values), np.array(errors)
    covered = np.abs(values - exact) < 2 * errors
    assert covered.mean() > 0.9
    assert values.std(0, ddof=1) == pytest.approx(errors.mean(0), rel=0.35)
    assert (errors.mean(0) < 0.01 * exact).all()


def test_the_matrix_is_that_of_some_classes(large):
    counts, data = large
    whole, part = build(*data, counts), build(*data, counts, most_pairs=100)
    assert whole.standard_errors is None
    assert 60 < len(part.pairs) <= 100
    classes = np.unique(part.pairs[:, 1])
    kept = np.isin(whole.pairs[:, 1], classes)
    assert part.pairs.tolist() == whole.pairs[kept].tolist()
    np.testing.assert_allclose(part.matrix, whole.matrix[np.ix_(kept, kept)], rtol=1e-5)


def test_few_classes_in_very_many_domains_are_shown_in_some():
    counts = np.ones((70, 2), np.int64)
    part = build(*make(counts), counts, most_pairs=30)
    assert 2 < len(part.pairs) <= 30 and len(np.unique(part.pairs[:, 1])) == 2


@pytest.mark.parametrize("chunk", [1, 7, 1000])
def test_chunks_do_not_matter(chunk, monkeypatch):
    data = make(HOLES)
    expected = build(*data, HOLES, most_pairs=1).statistics
    monkeypatch.setattr(statistics, "ELEMENTS", 50)
    assert build(*data, HOLES, most_pairs=1, chunk=chunk).statistics == pytest.approx(expected, rel=1e-5)


def test_memory_grows_with_pairs_times_features_not_with_their_square():
    """Four times the pairs take about four times the memory: no table of pairs × pairs, or samples × pairs."""
    import tracemalloc

    peaks = []
    for classes in (2_000, 8_000):
        counts = np.ones((2, classes), np.int64)
        centroids, z = torch.zeros(2 * classes, 4), torch.ones(500, 4)
        y = np.arange(500) % classes
        tracemalloc.start()
        sampled = SampledStatistics(counts, centroids)
        sampled.add(z, y, y % 2)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 5 * peaks[0]
    assert peaks[1] < 16_000**2 / 50
