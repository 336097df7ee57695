"""Post-hoc logit adjustment against a slow oracle, with the domain unknown and known."""

import math
from dataclasses import replace

import numpy as np
import pytest

from crosstail.second_stages import find

TAUS = [i / 20 for i in range(41)]


def priors(counts):
    """Of each domain, with one sample more of every class; and their mean over the domains with samples."""
    own = [[(n + 1) / (sum(row) + len(row)) for n in row] for row in counts]
    trained = [row for row, n in zip(own, counts, strict=True) if sum(n)]
    mean = [sum(row[c] for row in trained) / len(trained) for c in range(len(own[0]))]
    return mean, [row if sum(n) else mean for row, n in zip(own, counts, strict=True)]


def adjusted(features, tau, on, known):
    mean, own = priors(features.counts.tolist())
    scores = on.z.astype(float) @ features.classifier.weight.numpy().T.astype(float) + features.classifier.bias.numpy()
    for i, c in np.ndindex(len(scores), scores.shape[1]):
        scores[i, c] -= tau * math.log((own[on.domain[i]] if known else mean)[c])
    return scores


@pytest.mark.parametrize("known", [False, True])
def test_the_smallest_best_tau_on_validation_is_used(features, scores, pair_average, known):
    on = features.validation
    reached = [pair_average(adjusted(features, tau, on, known), on) for tau in TAUS]
    best = TAUS[reached.index(max(reached))]
    assert best > 0
    found = scores(find("posthoc_prior").fit(features), on.z, on.domain if known else None)
    np.testing.assert_allclose(found, adjusted(features, best, on, known), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("known", [False, True])
def test_without_validation_samples_tau_is_one(features, scores, known):
    head = find("posthoc_prior").fit(replace(features, validation=None))
    found = scores(head, features.z, features.domain if known else None)
    np.testing.assert_allclose(found, adjusted(features, 1, features, known), rtol=1e-4, atol=1e-4)


def test_a_domain_without_training_samples_has_the_prior_of_an_unknown_one(features, scores):
    counts = np.vstack([features.counts, np.zeros((1, 4), int)])
    head = find("posthoc_prior").fit(replace(features, counts=counts, validation=None))
    z = features.z[:7]
    np.testing.assert_allclose(scores(head, z, np.full(7, 3)), scores(head, z), atol=1e-5)
    np.testing.assert_allclose(scores(head, z), adjusted(features, 1, features, known=False)[:7], rtol=1e-4, atol=1e-4)
