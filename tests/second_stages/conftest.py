import numpy as np
import pytest
import torch

from crosstail.second_stages import Features, LinearHead

COUNTS = [[30, 8, 1, 4], [0, 12, 5, 20], [6, 6, 0, 9]]


def sampled(counts, seed=0, num_features=5, **more):
    """Features around a centre for each class and domain."""
    rng, table = np.random.default_rng(seed), np.asarray(counts)
    domain, y = (np.repeat(index.ravel(), table.ravel()) for index in np.indices(table.shape))
    centres = 2 * np.random.default_rng(7).normal(size=(*table.shape, num_features)).mean(0)
    z = (1 + centres[y] + 0.3 * domain[:, None] + rng.normal(size=(len(y), num_features))).astype(np.float32)
    return Features(z, y, domain, table, **more)


@pytest.fixture
def draw():
    """Features around a centre for each class and domain, from their counts."""
    return sampled


@pytest.fixture
def classifier():
    rng = np.random.default_rng(3)
    scale = np.array([3.0, 1.0, 0.3, 0.5])
    return LinearHead.of(scale[:, None] * rng.normal(size=(4, 5)), rng.normal(size=4))


@pytest.fixture
def features(classifier):
    """Three domains, four classes, two pairs without training samples."""
    validation = sampled(np.full((3, 4), 6), seed=1)
    return sampled(COUNTS, validation=validation, classifier=classifier)


@pytest.fixture
def scores():
    """The scores (N, C) of a head, as an array."""

    def scores(head, z, domain=None):
        with torch.no_grad():
            known = None if domain is None else torch.as_tensor(domain)
            return head(torch.as_tensor(np.asarray(z, np.float32)), known).numpy()

    return scores


@pytest.fixture
def pair_average():
    """Mean over pairs of the share of right answers, counted one by one."""

    def pair_average(said, on):
        hits = {}
        for i in range(len(on.y)):
            answer = max(range(said.shape[1]), key=lambda c: (said[i, c], -c))
            hits.setdefault((int(on.domain[i]), int(on.y[i])), []).append(answer == on.y[i])
        return round(sum(sum(each) / len(each) for each in hits.values()) / len(hits), 9)

    return pair_average
