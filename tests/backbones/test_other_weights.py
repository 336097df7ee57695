"""Weights as others publish them: DINOv2, CLIP and open_clip files, files with more in them, and models on the hub."""

import json

import numpy as np
import pytest
import timm
import torch
from huggingface_hub import constants
from safetensors.torch import save_file

from crosstail import RunSpec, backbones, fit
from crosstail.prediction.predictor import Predictor
from crosstail.training.resolve import resolve

TINY = "vit_xsmall_patch16_clip_224"
# From timm's names to those of OpenAI's and open_clip's own towers, applied in this order.
NAMES = [
    ("patch_embed.proj", "conv1"),
    ("norm_pre", "ln_pre"),
    ("blocks.", "transformer.resblocks."),
    (".norm", ".ln_"),
]
NAMES += [("attn.qkv.", "attn.in_proj_"), ("attn.proj", "attn.out_proj"), ("fc1", "c_fc"), ("fc2", "c_proj")]


@pytest.fixture(scope="module")
def network():
    torch.manual_seed(0)
    return timm.create_model(TINY, num_classes=48).eval()


@pytest.fixture(scope="module")
def clip(network, tmp_path_factory):
    """A whole model of open_clip: the tower with its projection (without bias), and the text model."""
    state = {}
    network.head.bias.data.zero_()
    for name, value in network.state_dict().items():
        for ours, theirs in NAMES:
            name = name.replace(ours, theirs)
        state[f"visual.{name}".replace("visual.norm.", "visual.ln_post.")] = value
    state["visual.proj"] = state.pop("visual.head.weight").T.contiguous()
    state["visual.class_embedding"] = state.pop("visual.cls_token")[0, 0]
    state["visual.positional_embedding"] = state.pop("visual.pos_embed")[0]
    del state["visual.head.bias"]
    file = tmp_path_factory.mktemp("clip") / "clip.pt"
    torch.save({**state, "logit_scale": torch.ones(()), "token_embedding.weight": torch.ones(3, 4)}, file)
    return file


def test_a_tower_of_clip_has_its_projection_where_it_is_frozen(network, clip):
    x = torch.rand(2, 3, 224, 224)
    frozen = backbones.build(f"timm:{TINY}", x.shape[1:], weights=str(clip), projected=True).eval()
    trained = backbones.build(f"timm:{TINY}", x.shape[1:], weights=str(clip)).eval()
    seen = (x - frozen.mean) / frozen.std
    with torch.no_grad():
        torch.testing.assert_close(frozen(x), network(seen), rtol=1e-4, atol=1e-5)
        before = network.forward_head(network.forward_features(seen), pre_logits=True)
        torch.testing.assert_close(trained(x), before, rtol=1e-4, atol=1e-5)
    assert (frozen.num_features, trained.num_features, frozen.notes) == (48, network.num_features, [])


def test_a_run_on_a_tower_of_clip_predicts_what_it_did(clip, tmp_path):
    how = {"backbone": f"timm:{TINY}", "weights": str(clip), "resolution": 32, "tune": "none", "labels": ("uniform",)}
    small = {"algorithm": "frozen", "second_stage": "ncm", "steps": 1}
    rng = np.random.default_rng(0)
    x, at = rng.integers(0, 255, (24, 8, 8, 3), dtype=np.uint8), np.arange(24)
    np.savez(tmp_path / "d.npz", x=x, y=at % 2, domain=at // 2 % 2, split=np.repeat(["train", "val", "test"], 8))
    run = fit(RunSpec(dataset=str(tmp_path / "d.npz"), **how, **small), tmp_path / "run").run
    found = Predictor(run.path).probabilities(x[16:]).argmax(1)
    assert found.tolist() == run.test.predicted.tolist()


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ViT-B-16-quickgelu", "timm:vit_base_patch16_clip_quickgelu_224"),
        ("ViT-H-14", "timm:vit_huge_patch14_clip_224"),
        ("ViT-B-16-SigLIP", "timm:vit_base_patch16_siglip_224"),
        ("RN50", "timm:resnet50_clip"),
    ],
)
def test_names_of_open_clip_are_those_of_timm(name, found, clip):
    spec = resolve(RunSpec(dataset="digits", backbone=f"open_clip:{name}", weights=str(clip)))
    assert spec.backbone == found and timm.is_model(found.removeprefix("timm:"))
    with pytest.raises(ValueError, match=rf"open_clip:{name} has no weights of its own: add --weights FILE, or use"):
        backbones.known(f"open_clip:{name}")


def test_a_tower_that_has_no_name_here_is_told_how_to_name_it():
    with pytest.raises(ValueError, match=r"open_clip:convnext_base: name its image tower as timm does, such as timm:"):
        backbones.known("open_clip:convnext_base", "w.pt")


def test_what_has_no_place_in_the_network_is_left_out_with_a_note(tmp_path):
    """An official file of DINOv2 has timm's names, and a mask token."""
    torch.manual_seed(0)
    state = timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict()
    torch.save(state, tmp_path / "plain.pth")
    torch.save({"mask_token": torch.zeros(1, 192), **state, "decoder.0.w": torch.ones(2)}, tmp_path / "more.pth")
    plain, more = (
        backbones.build("timm:vit_tiny_patch16_224", (3, 40, 40), weights=str(tmp_path / f"{name}.pth"))
        for name in ("plain", "more")
    )
    assert plain.weights == more.weights and plain.notes == []
    (note,) = more.notes
    assert "2 tensors of" in note and "vit_tiny_patch16_224, and left out: mask_token, decoder.0.w" in note


@pytest.mark.parametrize("key", ["blocks.0.ls1.gamma", "norm_pre.weight", "reg_token"])
def test_what_the_network_would_compute_with_is_not_left_out(tmp_path, key):
    state = timm.create_model("vit_tiny_patch16_224", num_classes=0).state_dict()
    torch.save({**state, key: torch.ones(192)}, tmp_path / "w.pth")
    with pytest.raises(ValueError, match=rf"does not fit vit_tiny_patch16_224: of its tensors, 1 unexpected \({key}"):
        backbones.build("timm:vit_tiny_patch16_224", (3, 40, 40), weights=str(tmp_path / "w.pth"))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A function that puts a model into an empty cache of the hub, which cannot be reached."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    folder = tmp_path / "hub/models--me--mine"

    def put(config, state=None):
        (folder / "refs").mkdir(parents=True)
        (folder / "refs/main").write_text("abc")
        (folder / "snapshots/abc").mkdir(parents=True)
        (folder / "snapshots/abc/config.json").write_text(json.dumps(config))
        if state:
            save_file(state, folder / "snapshots/abc/model.safetensors")

    return put


PIXELS = {"input_size": [3, 48, 48], "mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5], "classifier": "fc"}


def test_a_model_of_the_hub_is_that_of_timm(hub):
    torch.manual_seed(0)
    network = timm.create_model("resnet18", num_classes=5).eval()
    hub({"architecture": "resnet18", "num_classes": 5, "pretrained_cfg": PIXELS}, network.state_dict())
    backbone = backbones.build("hf-hub:me/mine", (3, 64, 64)).eval()
    x = torch.rand(1, 3, 48, 48)
    with torch.no_grad():
        expected = network.forward_head(network.forward_features((x - 0.5) / 0.5), pre_logits=True)
        torch.testing.assert_close(backbone(x), expected)
    assert backbone.size == 48 and backbone.weights and backbones.known("hf-hub:me/mine") == "hf-hub:me/mine"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"architecture": "resnet18", **PIXELS, "input_size": None}, "has no input_size: add --resolution"),
        ({"architecture": "resnet18", **PIXELS, "mean": None}, "has no mean and std"),
        ({"model_type": "bert"}, "config.json is not of timm: it names no architecture"),
    ],
)
def test_a_config_that_lacks_something_is_named(hub, config, message):
    hub(config)
    with pytest.raises(ValueError, match=rf"hf-hub:me/mine: .*{message}"):
        backbones.build("hf-hub:me/mine", (3, 64, 64), weights="random")


def test_a_model_that_cannot_be_fetched_is_named(hub):
    with pytest.raises(ValueError, match=r"hf-hub:me/mine are not in the cache and cannot be downloaded"):
        backbones.build("hf-hub:me/mine", (3, 64, 64))
