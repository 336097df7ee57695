"""Linear heads, and the classifier of stage one as one of them."""

from typing import Any, Self

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from crosstail.algorithms import Algorithm
from crosstail.second_stages._stage import Features, Head

COMPARED = 256  # samples on which a classifier is compared with its linear form
TOLERANCE = 1e-3


class LinearHead(Head):
    """Scores W z + b; with `unit`, of features scaled to unit length."""

    weight: Tensor  # (C, F)
    bias: Tensor  # (C,)
    unit: Tensor

    def __init__(self, num_features: int, num_domains: int, num_classes: int) -> None:
        super().__init__()
        self.register_buffer("weight", torch.zeros(num_classes, num_features))
        self.register_buffer("bias", torch.zeros(num_classes))
        self.register_buffer("unit", torch.tensor(False))

    @classmethod
    def of(cls, weight: Any, bias: Any, *, unit: Any = False, num_domains: int = 1) -> Self:
        """From weights (C, F) and biases (C,)."""
        head = cls(np.shape(weight)[1], num_domains, len(weight))
        for name, value in (("weight", weight), ("bias", bias), ("unit", unit)):
            getattr(head, name).copy_(torch.as_tensor(value))
        return head

    def forward(self, z: Tensor, domain: Tensor | None = None) -> Tensor:
        return F.linear(torch.where(self.unit, F.normalize(z), z), self.weight, self.bias)


def linear_classifier(algorithm: Algorithm, features: Features) -> LinearHead:
    """The classifier of an algorithm, where the domain is unknown, as a linear head on the CPU: W, b from its scores.

    It may be linear in the features or in features of unit length (LDAM's cosines), however it is written.
    """
    device = next(algorithm.head.parameters()).device
    some = np.linspace(0, len(features.y) - 1, COMPARED).astype(np.int64)
    z = torch.from_numpy(features.z[some])
    with torch.no_grad():
        bias, weight, expected = (
            algorithm.scores(points.to(device)).cpu() for points in (torch.zeros_like(z[:1]), torch.eye(z.shape[1]), z)
        )
        for unit in (False, True):
            head = LinearHead.of((weight - bias).T, bias[0], unit=unit)
            if torch.allclose(head(z), expected, rtol=TOLERANCE, atol=TOLERANCE * float(expected.abs().max())):
                return head
    raise ValueError(
        f"the classifier of {type(algorithm).__name__} is not linear in the features, so this second stage cannot "
        f"rescale it: use one that fits a classifier of its own, such as retrain or ncm"
    )
