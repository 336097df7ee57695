"""The base class of all backbones."""

from collections.abc import Callable

from torch import Tensor, nn


class Backbone(nn.Module):
    """Maps inputs (B, ...) to features (B, `num_features`).

    `weights` is a checksum of the pretrained weights, empty after random initialisation. `maps` names the layers whose
    outputs an algorithm may change in training: feature maps (B, channels, H, W) of an early layer, or vectors (B, F).
    """

    num_features: int
    weights: str = ""

    def __init__(self, layers: nn.Module, num_features: int, maps: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.layers = layers
        self.num_features = num_features
        self.maps = maps

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
