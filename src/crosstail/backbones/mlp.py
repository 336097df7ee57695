"""One hidden layer for vectors; its activations are the features."""

from torch import nn

from crosstail.backbones._backbone import Backbone, require


def build(input_shape: tuple[int, ...], width: int | None = None) -> Backbone:
    """`width` hidden units, 256 by default."""
    require("vectors", "mlp", input_shape)
    width = width or 256
    return Backbone(nn.Sequential(nn.Linear(input_shape[0], width), nn.ReLU()), width, maps=("",))
