"""A frozen backbone in ONNX Runtime: only where it is installed, worth its export, and equal to PyTorch."""

import sys

import numpy as np
import pytest
import torch
from torch import nn

from crosstail import backbones
from crosstail.backbones import Backbone
from crosstail.backbones import _frozen as frozen
from crosstail.backbones._frozen import FrozenNetwork, exported_file, onnx_session

pytest.importorskip("onnxruntime", reason="the extra [export] is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CROSSTAIL_CACHE", str(tmp_path))
    return tmp_path


def small(seed=0):
    torch.manual_seed(seed)
    layers = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    backbone = Backbone(layers, 4)
    backbone.weights = "made"
    return backbone


def in_pytorch(backbone, x):
    with torch.no_grad():
        return backbone.eval()(x).numpy()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["efficientnet_lite0", "timm:test_vit", "timm:test_convnext2"])
def test_real_networks_are_equal_in_batches_of_any_size(name):
    weights = None if name == "efficientnet_lite0" else "random"
    backbone = backbones.build(name, (3, 64, 64), weights=weights).eval()
    x = torch.rand(5, 3, 64, 64)
    with torch.no_grad():
        session = onnx_session(backbone, backbone.prepare(x), exported_file(backbone))
        assert session is not None
        for n in (1, 2, 5):
            expected, found = in_pytorch(backbone, x[:n]), frozen.run(session, backbone.prepare(x[:n]))
            assert np.abs(found - expected).max() <= 1e-3 * np.abs(expected).max()


def test_the_export_comes_when_it_is_worth_it_and_is_kept(monkeypatch, cache):
    monkeypatch.setattr(frozen, "WORTH", 4)
    x = torch.rand(3, 3, 8, 8)
    network = FrozenNetwork(small())
    assert not list(cache.rglob("*.onnx"))
    for _ in range(3):
        np.testing.assert_allclose(network(x), in_pytorch(small(), x), rtol=1e-4, atol=1e-6)
    (file,) = cache.rglob("*.onnx")
    called = []
    again = small()
    again.register_forward_hook(lambda *args: called.append(args))
    np.testing.assert_allclose(FrozenNetwork(again)(x), in_pytorch(small(), x), rtol=1e-4, atol=1e-6)
    assert not called and file.exists()  # from the first image on, in ONNX Runtime


@pytest.mark.parametrize("damage", ["other weights", "no file of ONNX", "cut"])
def test_what_differs_from_pytorch_is_not_used(monkeypatch, cache, damage):
    monkeypatch.setattr(frozen, "WORTH", 0)
    x = torch.rand(3, 3, 8, 8)
    FrozenNetwork(small(seed=1) if damage == "other weights" else small())(x)
    (file,) = cache.rglob("*.onnx")
    if damage == "cut":
        file.write_bytes(file.read_bytes()[:-100])
    elif damage != "other weights":
        file.write_bytes(b"hello")
    np.testing.assert_allclose(FrozenNetwork(small())(x), in_pytorch(small(), x), rtol=1e-4, atol=1e-6)
    assert not file.exists()  # so that the next time it is made anew


def test_without_onnx_runtime_it_is_pytorch(monkeypatch, cache):
    monkeypatch.setattr(frozen, "WORTH", 0)
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    x = torch.rand(3, 3, 8, 8)
    np.testing.assert_allclose(FrozenNetwork(small())(x), in_pytorch(small(), x), rtol=1e-6)
    assert not list(cache.rglob("*.onnx"))
