"""What all backbones have in common."""

from torch import Tensor, nn


class Backbone(nn.Module):
    """Maps inputs (B, ...) to features (B, `num_features`).

    `weights` names the pretrained weights (a checksum), so that cached features can tell them apart; it is empty for
    a backbone that starts from random numbers.
    """

    num_features: int
    weights: str = ""

    def __init__(self, layers: nn.Module, num_features: int) -> None:
        super().__init__()
        self.layers = layers
        self.num_features = num_features

    def forward(self, x: Tensor) -> Tensor:
        """Features (B, F) of inputs (B, ...)."""
        return self.layers(x)


def require(kind: str, name: str, input_shape: tuple[int, ...]) -> None:
    """Refuse an input of the wrong kind: 'images' are (3, H, W), 'vectors' are (F,)."""
    expected = {"images": 3, "vectors": 1}[kind]
    if len(input_shape) != expected:
        found = "vectors" if len(input_shape) == 1 else "images"
        other = "mlp" if found == "vectors" else "small_cnn or efficientnet_lite0"
        raise ValueError(
            f"backbone {name!r} takes {kind}, but the data are {found} of shape {input_shape}: use {other}"
        )
