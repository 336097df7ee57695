"""A backbone for Crosstail: --backbone ./mine.py. One layer on patches of 4 × 4 pixels, averaged over the image."""

from torch import nn

from crosstail.backbones import Backbone, require


def build(input_shape: tuple[int, ...], width: int | None = None) -> Backbone:
    """From images (B, 3, H, W), 0 to 1, or vectors (B, F) to features (B, width)."""
    require("images", "mine", input_shape)
    width = width or 64
    layers = [nn.Conv2d(3, width, 4, stride=4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    return Backbone(nn.Sequential(*layers), width)
