"""Feature extractors: one file per backbone, and `timm:NAME` for any model of timm.

A file defines `build(input_shape, width) -> Backbone`, or `NETWORK` for a pretrained model of timm.
"""

from collections.abc import Callable

from crosstail import discovery
from crosstail.backbones._backbone import Backbone, require
from crosstail.backbones._timm import PREFIX, Pretrained
from crosstail.backbones._weights import RANDOM

__all__ = ["PREFIX", "RANDOM", "Backbone", "Pretrained", "build", "pretrained", "require"]

PACKAGE = "crosstail.backbones"


def build(
    name: str,
    input_shape: tuple[int, ...],
    width: int | None = None,
    *,
    weights: str | None = None,
    resolution: int | None = None,
) -> Backbone:
    """Build a backbone by name for inputs of shape (3, H, W) or (F,), without the batch dimension.

    `weights` is a file or "random"; by default a pretrained network has its own, and resizes images to the `resolution`
    that it was trained on.
    """
    if width is not None and width < 1:
        raise ValueError(f"width is {width}, expected 1 or more")
    network = pretrained(name)
    if network is None:
        if weights not in (None, RANDOM):
            raise ValueError(f"backbone {name!r} starts from random weights: remove --weights, or use timm:NAME")
        backbone = discovery.declared(PACKAGE, name, "backbone", "build", Callable)(input_shape, width)
        if not isinstance(backbone, Backbone):
            raise ValueError(f"{name}: build returns {type(backbone).__name__}, expected a Backbone")
        return backbone
    require("images", name, input_shape)
    if width is not None:
        raise ValueError(
            f"{name} has a fixed width: remove --width, or add --tune none, where it is the width of the head"
        )
    return network.build(input_shape, weights, resolution)


def pretrained(name: str) -> Pretrained | None:
    """The pretrained network of this name, or None for a backbone without pretrained weights."""
    if name.startswith(PREFIX):
        return Pretrained(name.removeprefix(PREFIX))
    if discovery.own_files(name):  # which is not run for this
        return None
    return getattr(discovery.find(PACKAGE, name, "backbone"), "NETWORK", None)
