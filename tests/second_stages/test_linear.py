import numpy as np
import pytest
import torch
from torch import nn

from crosstail import algorithms, backbones, discovery
from crosstail.algorithms import Task
from crosstail.second_stages import linear_classifier

NAMES = sorted({*discovery.names("crosstail.algorithms")} - {"arm", "mixstyle"})  # not linear; needs feature maps


@pytest.mark.parametrize("name", NAMES)
def test_it_has_the_scores_of_every_algorithm(features, scores, name):
    torch.manual_seed(0)
    task = Task(torch.from_numpy(features.counts))
    algorithm = algorithms.build(name, backbones.build("identity", (5,)), task)
    if name == "mtl":
        algorithm.domain_embedding += torch.arange(15.0).reshape(3, 5)
        algorithm.met |= True
    z = np.random.default_rng(1).normal(size=(9, 5)).astype(np.float32)
    with torch.no_grad():
        expected = algorithm.scores(torch.from_numpy(z)).numpy()
    np.testing.assert_allclose(scores(linear_classifier(algorithm, features), z), expected, rtol=1e-4, atol=1e-4)


def test_a_classifier_that_is_not_linear_is_named(features):
    algorithm = algorithms.build("erm", backbones.build("identity", (5,)), Task(torch.from_numpy(features.counts)))
    algorithm.head = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 4))
    with pytest.raises(ValueError, match=r"ERM is not linear.*retrain"):
        linear_classifier(algorithm, features)
