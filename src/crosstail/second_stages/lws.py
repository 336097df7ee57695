"""One factor for every class of stage one's classifier, trained on class-balanced batches (Kang et al., 2020)."""

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


# A factor has to go as far as 2 or 0.5, so its rate does not depend on that of a network.
STAGE = TrainedStage(algorithm="erm", class_balanced=True, hparams={"lr": 0.01}, start=start, head=ScaledHead)
