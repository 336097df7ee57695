"""Feature extractors: one file per backbone, and `timm:NAME` for any model of timm.

A file defines `build(input_shape, width) -> Backbone`, or `NETWORK` for a pretrained model of timm.
"""

from collections.abc import Callable

from crosstail import discovery
from crosstail.backbones import _open_clip
from crosstail.backbones._backbone import Backbone, Divided, require
from crosstail.backbones._timm import HUB, PREFIX, Pretrained
from crosstail.backbones._weights import RANDOM

__all__ = ["PREFIX", "RANDOM", "Backbone", "Divided", "Pretrained", "build", "known", "pretrained", "require"]

PACKAGE = "crosstail.backbones"


def build(
    name: str,
    input_shape: tuple[int, ...],
    width: int | None = None,
    *,
    weights: str | None = None,
    resolution: int | None = None,
    projected: bool = False,
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
    return network.build(input_shape, weights, resolution, projected)


def known(name: str, weights: str | None = None) -> str:
    """A backbone as its file or timm spells it; an unknown one is refused with a similar name."""
    if name.startswith(_open_clip.PREFIX):
        found = PREFIX + _open_clip.in_timm(name.removeprefix(_open_clip.PREFIX))
        if weights is None:
            raise ValueError(f"{name} has no weights of its own: add --weights FILE, or use {found}, which has timm's")
        return found
    return name if name.startswith((PREFIX, HUB)) else discovery.known(PACKAGE, name, "backbone")


def pretrained(name: str) -> Pretrained | None:
    """The pretrained network of this name, or None for a backbone without pretrained weights."""
    if name.startswith((PREFIX, HUB)):
        return Pretrained(name.removeprefix(PREFIX))
    if discovery.own_files(name):  # which is not run for this
        return None
    return getattr(discovery.find(PACKAGE, name, "backbone"), "NETWORK", None)
