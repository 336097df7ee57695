import math
from dataclasses import replace

import numpy as np
import pytest

from crosstail.second_stages import find


def loss(cosines, s, on):
    """Log loss with every pair weighing the same."""
    by_pair = {}
    for i in range(len(on.y)):
        total = sum(math.exp(s * cosines[i][c]) for c in range(len(cosines[i])))
        by_pair.setdefault((on.domain[i], on.y[i]), []).append(math.log(total) - s * cosines[i][on.y[i]])
    return sum(sum(each) / len(each) for each in by_pair.values())


@pytest.mark.parametrize("validated", [True, False])
def test_scores_are_cosines_to_the_class_means_at_the_best_sharpness(features, scores, validated):
    if not validated:
        features = replace(features, validation=None)
    means = []
    for c in range(4):
        pairs = []
        for d in range(3):
            members = [features.z[i] for i in range(len(features.y)) if (features.domain[i], features.y[i]) == (d, c)]
            if members:
                pairs.append([sum(float(z[f]) for z in members) / len(members) for f in range(5)])
        means.append([sum(mean[f] for mean in pairs) / len(pairs) for f in range(5)])
    on = features.validation or features

    def cosine(z, mean):
        return sum(float(z[f]) * mean[f] for f in range(5)) / math.hypot(*z) / math.hypot(*mean)

    cosines = [[cosine(z, mean) for mean in means] for z in on.z]
    found = scores(find("ncm").fit(features), on.z)
    s = found[0, 0] / cosines[0][0]
    np.testing.assert_allclose(found, s * np.array(cosines), rtol=1e-4, atol=1e-4)
    assert s > 1
    best = loss(cosines, s, on)
    assert all(best <= loss(cosines, factor * s, on) + 1e-6 for factor in (0.5, 0.9, 1.1, 2))


def test_the_mean_of_a_class_does_not_depend_on_the_size_of_its_pairs(features):
    twice = features.keep(np.concatenate([np.arange(len(features.y)), np.flatnonzero(features.domain == 0)]))
    one, other = (find("ncm").fit(each).weight for each in (features, twice))
    np.testing.assert_allclose(one, other, rtol=1e-4)


def test_a_class_without_training_samples_is_never_predicted(features, scores):
    kept = features.keep(np.flatnonzero(features.y != 2))
    kept = replace(kept, counts=np.where(np.arange(4) == 2, 0, features.counts))
    z = np.random.default_rng(0).normal(size=(500, 5))
    found = scores(find("ncm").fit(kept), z)
    assert np.isfinite(found).all() and not (found.argmax(1) == 2).any()
