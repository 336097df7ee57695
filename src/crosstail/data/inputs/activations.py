"""Activations of images in front of a network's last stages, which are trained on them (see `Activations`)."""

import torch

from crosstail.data.activations import Activations
from crosstail.data.inputs._kind import InputKind

KIND = InputKind(
    holds=lambda x: isinstance(x, Activations),
    noun="activation map",
    rank=0,  # no model takes them as they are
    shape=lambda x: x.image,
    tensor=lambda x: torch.from_numpy(x).float(),
    take=Activations.take,
    views=lambda x: x.views if x.views > 1 else 0,
)
