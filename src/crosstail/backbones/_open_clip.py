"""Image towers of open_clip: their names in timm, and their projection into the space that images share with text."""

import re
from typing import Any

from torch import Tensor

PREFIX = "open_clip:"
SIZES = {"B": "base", "L": "large", "H": "huge", "g": "giant", "bigG": "gigantic"}


def in_timm(name: str) -> str:
    """What timm calls the image tower of a model of open_clip.

    >>> in_timm("ViT-B-32-quickgelu"), in_timm("ViT-L-14-336"), in_timm("RN50x4")
    ('vit_base_patch32_clip_quickgelu_224', 'vit_large_patch14_clip_336', 'resnet50x4_clip')
    """
    if found := re.fullmatch(r"ViT-(B|L|H|g|bigG)-(\d+)(-SigLIP)?(?:-(\d+))?(-quickgelu)?", name):
        kind = "siglip" if found[3] else "clip_quickgelu" if found[5] else "clip"
        return f"vit_{SIZES[found[1]]}_patch{found[2]}_{kind}_{found[4] or 224}"
    if not (found := re.fullmatch(r"RN(\d+(?:x\d+)?)(-quickgelu)?", name)):
        how = "name its image tower as timm does, such as timm:convnext_base.clip_laion2b, with --weights FILE"
        raise ValueError(f"{PREFIX}{name}: {how}")
    return f"resnet{found[1]}_clip"


def add_projection(network: Any, state: dict[str, Tensor]) -> None:
    """Give a network the linear projection of the tower in a file, if it has one, in place of a classifier."""
    for name, axis in (("visual.proj", 1), ("visual.head.proj.weight", 0), ("visual.attnpool.c_proj.weight", 0)):
        if name in state:
            network.reset_classifier(state[name].shape[axis])
