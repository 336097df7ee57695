import torch
from torch import nn

from crosstail import algorithms
from crosstail.algorithms import Task
from crosstail.backbones import Backbone


def test_running_statistics_are_those_of_the_features_before_the_steps(samples, train):
    torch.manual_seed(0)
    layers = nn.Sequential(nn.Linear(4, 5), nn.BatchNorm1d(5, momentum=None), nn.ReLU())
    algorithm = algorithms.build("mldg", Backbone(layers, 5), Task(torch.ones(3, 3)), {"lr": 1.0}).double().train()
    batch = samples(0)
    with torch.no_grad():
        expected = torch.stack([layers[0](part.x).mean(0) for part in batch.parts()]).mean(0)
    train(algorithm, [batch])
    torch.testing.assert_close(layers[1].running_mean, expected)
    assert layers[1].num_batches_tracked == 3


def test_boda_remembers_the_features_before_the_steps(tiny, samples, train):
    algorithm, alone, batch = tiny("boda+mldg", lr=1.0), tiny("boda"), samples(0)
    with torch.no_grad():
        alone.losses(alone.backbone(batch.x), batch)
    (terms,) = train(algorithm, [batch])
    assert list(terms) == ["cross_entropy", "alignment", "another_domain"]
    torch.testing.assert_close(algorithm.criterion.statistics.mean, alone.criterion.statistics.mean)
    assert torch.equal(algorithm.criterion.statistics.counts, alone.criterion.statistics.counts)
