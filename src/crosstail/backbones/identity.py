"""No backbone: the features are the vectors themselves, and only a classifier is trained on them."""

from torch import nn

from crosstail.backbones._backbone import Backbone, require


def build(input_shape: tuple[int, ...], width: int | None = None) -> Backbone:
    """The vectors themselves; `width` is ignored."""
    require("vectors", "identity", input_shape)
    return Backbone(nn.Identity(), input_shape[0])
