"""ResNet-50 with torchvision's first ImageNet weights, the paper's network for photos (He et al., 2016)."""

from crosstail.backbones._timm import Pretrained

NETWORK = Pretrained("resnet50.tv_in1k")
