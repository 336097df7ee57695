"""A backbone in two parts: one after the other they compute the same, and each has its own weights."""

import pytest
import torch
from torch import nn

from crosstail import backbones

NETWORKS = ["efficientnet_lite0", "timm:resnet18", "timm:convnext_atto", "timm:vit_tiny_patch16_224"]


def built(name, size=64):
    torch.manual_seed(0)
    size = 224 if "vit" in name else size
    return backbones.build(name, (3, size, size), weights="random", resolution=size).eval()


@pytest.mark.parametrize("stages", [1, 2])
@pytest.mark.parametrize("name", NETWORKS)
def test_the_parts_compute_what_the_network_does(name, stages):
    whole = built(name)
    cut, front, tail, both = whole.divided(stages)
    x = torch.rand(2, 3, 80, 70)
    with torch.no_grad():
        expected, activations = whole(x), front(x)
        assert torch.equal(tail(activations), expected) and torch.equal(both(x)[0], expected)
        assert torch.equal(both(x)[1], activations)
    assert cut == whole.cuts[stages - 1] and activations.shape[1:] == cut.shape
    assert tail.num_features == whole.num_features and cut.size == activations[0].numel() * 2
    sizes = [sum(value.numel() for value in part.state_dict().values()) for part in (front, tail, whole)]
    assert sizes[0] + sizes[1] == sizes[2] and sizes[1] > 0
    assert len({front.signature, both.signature, whole.signature}) == 3


def test_a_tail_is_trained_with_the_statistics_of_its_pretraining():
    whole = built("efficientnet_lite0")
    whole.weights = "made"
    tail = whole.divided(1).tail.train()
    assert not any(m.training for m in tail.modules() if isinstance(m, nn.BatchNorm2d))
    tail(torch.rand(2, 192, 4, 4)).sum().backward()
    assert all(parameter.grad is not None for parameter in tail.parameters())


@pytest.mark.parametrize(
    ("name", "stages", "words"),
    [
        ("timm:hrnet_w18_small", 1, "hrnet_w18_small cannot be cut behind stage3 .*--tune all"),
        ("timm:xcit_nano_12_p16_224", 1, "needs more than the activations there.*another backbone"),
        ("timm:resnet18", 5, "resnet18.* has 5 stages: --tune last:5 is too many"),
    ],
)
def test_a_network_that_cannot_be_cut_there_says_so(name, stages, words):
    with pytest.raises(ValueError, match=words):
        built(name, 224 if "xcit" in name else 64).divided(stages)
