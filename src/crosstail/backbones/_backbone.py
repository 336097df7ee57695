"""The base class of all backbones."""

from torch import Tensor, nn


class Backbone(nn.Module):
    """Maps inputs (B, ...) to features (B, `num_features`).

    `weights` is a checksum of the pretrained weights, empty after random initialisation.
    """

    num_features: int
    weights: str = ""

    def __init__(self, layers: nn.Module, num_features: int) -> None:
        super().__init__()
        self.layers = layers
        self.num_features = num_features

    @property
    def signature(self) -> str:
        """Identifies the features an input gets, as the key of cached features."""
        return f"{type(self).__qualname__} {self.weights}"

    def prepare(self, x: Tensor) -> Tensor:
        """Resize and scale inputs (B, ...) for the layers."""
        return x

    def forward(self, x: Tensor) -> Tensor:
        return self.layers(self.prepare(x))


def require(kind: str, name: str, input_shape: tuple[int, ...]) -> None:
    """Refuse inputs of the wrong kind: 'images' are (3, H, W), 'vectors' are (F,)."""
    expected = {"images": 3, "vectors": 1}[kind]
    if len(input_shape) != expected:
        found = "vectors" if len(input_shape) == 1 else "images"
        other = "mlp" if found == "vectors" else "small_cnn or efficientnet_lite0"
        data = f"the data are {found} of shape {input_shape}"
        raise ValueError(f"backbone {name!r} takes {kind}, but {data}: use {other}")
