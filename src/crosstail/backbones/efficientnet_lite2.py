"""EfficientNet-Lite2 with ImageNet weights from a package: larger and slower than Lite0, and better on ImageNet."""

from crosstail.backbones._efficientnet_lite import packaged

NETWORK = packaged(2, "efficientnet-lite2-9656183e.pth", small=130)
