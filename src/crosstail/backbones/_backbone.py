"""The base class of all backbones."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple, Self

from torch import Tensor, nn


class Cut(NamedTuple):
    """A place where a backbone can be divided."""

    module: str  # the last layer in front of it
    shape: tuple[int, ...]  # of the activations of one sample
    mirrors: bool = False  # whether they are a map (channels, H, W), which can be mirrored as the image can

    @property
    def size(self) -> int:
        """Bytes of the activations of one sample in half precision."""
        return 2 * math.prod(self.shape)


class Divided(NamedTuple):
    """A backbone in two parts, which compute the same one after the other."""

    cut: Cut
    front: "Backbone"
    tail: "Backbone"
    both: "Backbone"  # the whole of it, with features and activations as its output


class Backbone(nn.Module):
    """Maps inputs (B, ...) to features (B, `num_features`).

    `weights` is a checksum of the pretrained weights, empty after random initialisation. `maps` names the layers whose
    outputs an algorithm may change in training: feature maps (B, channels, H, W) of an early layer, or vectors (B, F).
    """

    num_features: int
    weights: str = ""
    notes: Sequence[str] = ()  # for users, such as what was left out of a file of weights

    def __init__(self, layers: nn.Module, num_features: int, maps: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.layers = layers
        self.num_features = num_features
        self.maps = maps

    @property
    def cuts(self) -> Sequence[Cut]:
        """Where it can be divided, beginning with the cut in front of its last stage."""
        return ()

    def divided(self, stages: int) -> Divided:
        """What comes before its last stages, and these."""
        raise ValueError(f"{type(self).__name__} cannot be cut")

    def train(self, mode: bool = True) -> Self:
        """Training mode, in which pretrained batch norm statistics stay fixed."""
        super().train(mode)
        for module in self.modules():
            if self.weights and isinstance(module, nn.modules.batchnorm._BatchNorm):
                module.eval()
        return self

    @property
    def signature(self) -> str:
        """Identifies the features an input gets, as the key of cached features."""
        return f"{type(self).__qualname__} {self.weights}"

    def prepare(self, x: Tensor) -> Tensor:
        """Resize and scale inputs (B, ...) for the layers."""
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.prepare(x))

    def changed(self, change: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
        """Features (B, F) if the outputs of the layers `maps` are replaced by `change` of them."""
        layers = [self.layers.get_submodule(name) for name in self.maps]
        hooks = [layer.register_forward_hook(lambda _layer, _inputs, maps: change(maps)) for layer in layers]
        try:
            return self(x)
        finally:
            for hook in hooks:
                hook.remove()


def require(kind: str, name: str, input_shape: tuple[int, ...]) -> None:
    """Refuse inputs of the wrong kind: 'images' are (3, H, W), 'vectors' are (F,)."""
    others = {3: ("images", "small_cnn or efficientnet_lite0"), 1: ("vectors", "mlp")}
    found, other = others.get(len(input_shape), ("samples", "one for them"))
    if found != kind:
        data = f"the data are {found} of shape {input_shape}"
        raise ValueError(f"backbone {name!r} takes {kind}, but {data}: use {other}")
