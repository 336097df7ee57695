"""Nearest class mean against a slow oracle, and on data that are hard to average."""

import math

import numpy as np
import torch

from crosstail.second_stages import Features, find


def features(z, y, domain, num_domains, num_classes, **more):
    y, domain = np.asarray(y), np.asarray(domain)
    counts = np.zeros((num_domains, num_classes), np.int64)
    np.add.at(counts, (domain, y), 1)
    return Features(np.asarray(z, np.float32), y, domain, counts, **more)


def scores(head, z):
    return head(torch.as_tensor(np.asarray(z, np.float32))).numpy()


def test_scores_are_scaled_cosines_to_the_class_means():
    rng = np.random.default_rng(0)
    y, domain = rng.integers(0, 4, 60), rng.integers(0, 3, 60)
    z, new = rng.normal(size=(60, 5)) + 2 * np.eye(5)[y], rng.normal(size=(7, 5))
    found = scores(find("ncm").fit(features(z, y, domain, 3, 4)), new)
    cosines = np.zeros((7, 4))
    for c in range(4):
        members = [z[i] for i in range(60) if y[i] == c]
        mean = [sum(member[f] for member in members) / len(members) for f in range(5)]
        for i in range(7):
            dot = sum(new[i][f] * mean[f] for f in range(5))
            cosines[i, c] = dot / math.hypot(*new[i]) / math.hypot(*mean)
    scale = found[0, 0] / cosines[0, 0]
    assert scale >= 1
    np.testing.assert_allclose(found, scale * cosines, rtol=1e-4)
