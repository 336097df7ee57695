import math
from dataclasses import replace

import numpy as np
import pytest

from crosstail.second_stages import LinearHead, find


def normalised(classifier, tau, z):
    """Scores with every w_c and b_c divided by ‖w_c‖^τ, and multiplied by a common factor."""
    norms = [math.sqrt(sum(float(w) ** 2 for w in row)) for row in classifier.weight]
    common = math.exp(sum(math.log(norm) for norm in norms) / len(norms))
    return np.array(
        [
            [
                (sum(float(row[f]) * x[f] for f in range(len(x))) + float(b)) * (common / norm) ** tau
                for row, b, norm in zip(classifier.weight, classifier.bias, norms, strict=True)
            ]
            for x in z.astype(float)
        ]
    )


def test_the_smallest_best_tau_on_validation_is_used(features, scores, pair_average):
    on = features.validation
    taus = [i / 20 for i in range(21)]
    reached = [pair_average(normalised(features.classifier, tau, on.z), on) for tau in taus]
    best = taus[reached.index(max(reached))]
    assert 0 < best < 1 and max(reached) > reached[0]
    found = scores(find("tau_norm").fit(features), on.z)
    np.testing.assert_allclose(found, normalised(features.classifier, best, on.z), rtol=1e-4, atol=1e-4)


def test_without_validation_samples_all_norms_are_equal(features, scores):
    head = find("tau_norm").fit(replace(features, validation=None))
    np.testing.assert_allclose(np.ptp(np.linalg.norm(head.weight, axis=1)), 0, atol=1e-5)
    np.testing.assert_allclose(scores(head, features.z), normalised(features.classifier, 1, features.z), atol=1e-4)


def test_of_ties_the_classifier_that_changes_least_is_kept(features):
    """Equal norms: τ changes nothing."""
    weight = np.eye(5)[:4]
    head = find("tau_norm").fit(replace(features, classifier=LinearHead.of(weight, np.arange(4.0))))
    np.testing.assert_allclose(head.weight, weight, atol=1e-6)
    np.testing.assert_allclose(head.bias, np.arange(4))


@pytest.mark.parametrize("validated", [True, False])
def test_a_class_whose_weights_are_all_zero_is_left_as_it_is(features, validated):
    weight = np.vstack([np.zeros(5), np.eye(5)[:3]])
    features = replace(features, classifier=LinearHead.of(weight, np.ones(4)))
    head = find("tau_norm").fit(features if validated else replace(features, validation=None))
    assert head.weight.isfinite().all() and not head.weight[0].any() and float(head.bias[0]) == 1
