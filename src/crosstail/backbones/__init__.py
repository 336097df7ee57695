"""What turns an input into features: one file per backbone, each with `build(input_shape, width) -> Backbone`."""

from crosstail import discovery
from crosstail.backbones._backbone import Backbone


def build(name: str, input_shape: tuple[int, ...], width: int | None = None) -> Backbone:
    """A backbone by its name for inputs of one shape, without the batch: (3, H, W) or (F,).

    >>> build("mlp", (1280,)).num_features
    256
    """
    if width is not None and width < 1:
        raise ValueError(f"width is {width}, expected 1 or more")
    backbone: Backbone = discovery.find("crosstail.backbones", name, "backbone").build(input_shape, width)
    return backbone


__all__ = ["Backbone", "build"]
