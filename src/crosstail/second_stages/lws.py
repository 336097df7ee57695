"""Learnable weight scaling: a factor for each class of stage one's classifier, classes balanced (Kang et al., 2020)."""

import torch
from torch import Tensor, nn

from crosstail.second_stages._linear import LinearHead
from crosstail.second_stages._stage import Features, TrainedStage


class ScaledHead(LinearHead):
    """Learnable weight scaling: scores f_c (w_c · z + b_c), in which only the factors f (C,) are trained."""

    def __init__(self, num_features: int, num_domains: int, num_classes: int) -> None:
        super().__init__(num_features, num_domains, num_classes)
        self.scale = nn.Parameter(torch.ones(num_classes))

    def forward(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        return self.scale * super().forward(z, domain)


def start(features: Features) -> ScaledHead:
    """Stage one's classifier, with all factors 1."""
    classifier = features.classifier
    assert isinstance(classifier, LinearHead)
    return ScaledHead.of(classifier.weight, classifier.bias, unit=classifier.unit)


STAGE = TrainedStage(
    algorithm="erm",
    class_balanced=True,
    hparams={"lr": 0.01},  # a factor may have to move by 1, whatever rate suits a network
    start=start,
    head=ScaledHead,
    differs=("Adam with learning rate 0.01; the paper's code uses SGD",),
)
