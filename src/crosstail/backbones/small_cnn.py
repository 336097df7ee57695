"""The small CNN of the paper's digits experiments, as in DomainBed (Gulrajani and Lopez-Paz, 2021)."""

from torch import nn

from crosstail.backbones._backbone import Backbone, require


def build(input_shape: tuple[int, ...], width: int | None = None) -> Backbone:
    """Four 3×3 convolutions with group norm and global average pooling; `width` is 64 in the paper."""
    require("images", "small_cnn", input_shape)
    width = width or 64
    if width % 8:
        expected = "a multiple of 8 (its channels are normalised in 8 groups)"
        raise ValueError(f"width of small_cnn is {width}, expected {expected}")
    layers: list[nn.Module] = []
    channels = input_shape[0]
    for wide, stride in ((width, 1), (2 * width, 2), (2 * width, 1), (2 * width, 1)):
        layers += [nn.Conv2d(channels, wide, 3, stride, padding=1), nn.ReLU(), nn.GroupNorm(8, wide)]
        channels = wide
    return Backbone(nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten()), channels, maps=("2", "5"))
