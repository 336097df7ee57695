"""timm models: weights from a file, a package or the hub, and their own preprocessing."""

import http.server
import pickle
import threading
from pathlib import Path

import pytest
import timm
import torch
from huggingface_hub import constants
from safetensors.torch import save, save_file
from timm.data import create_transform, resolve_model_data_config
from torch import nn
from torchvision.transforms.functional import to_pil_image

from crosstail import backbones

SHAPE = (3, 40, 40)


@pytest.fixture(scope="module")
def full():
    """A small network with a classifier, and batch norm statistics that a new one does not have."""
    torch.manual_seed(0)
    network = timm.create_model("resnet18", num_classes=7)
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            nn.init.uniform_(module.running_mean, -0.1, 0.1)
            nn.init.uniform_(module.running_var, 0.5, 1.5)
    return network.eval()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("weights")


@pytest.fixture(scope="module")
def file(full, folder):
    torch.save(full.state_dict(), folder / "w.pth")
    return folder / "w.pth"


def loaded(path, name="timm:resnet18", **options):
    return backbones.build(name, SHAPE, weights=str(path), **options).eval()


@pytest.mark.parametrize("name", ["resnet18", "vit_tiny_patch16_224", "convnext_atto"])
def test_features_are_those_of_timm_with_its_own_preparation(tmp_path, name):
    torch.manual_seed(1)
    network = timm.create_model(name).eval()
    save_file(network.state_dict(), tmp_path / "w.safetensors")
    backbone = loaded(tmp_path / "w.safetensors", f"timm:{name}")
    config = resolve_model_data_config(network) | {"crop_pct": 1.0, "interpolation": "bilinear"}
    image = torch.rand(3, 224, 224).mul(255).round().div(255)
    with torch.no_grad():
        seen = create_transform(**config)(to_pil_image(image))[None]
        expected = network.forward_head(network.forward_features(seen), pre_logits=True)
        torch.testing.assert_close(backbone(image[None]), expected, rtol=1e-4, atol=1e-5)
    assert backbone.num_features == expected.shape[1]


def test_every_form_of_a_file_holds_the_same_weights(full, file, folder):
    state = full.state_dict()
    torch.save({"epoch": 3, "state_dict": {f"module.{k}": v for k, v in state.items()}}, folder / "wrapped.pth")
    torch.save({"model": state, "optimizer": {"lr": 0.1}}, folder / "model.pth")
    torch.save({k: v for k, v in state.items() if not k.startswith("fc.")}, folder / "headless.pth")
    save_file(state, folder / "w.safetensors")
    expected = loaded(file)
    for name in ("wrapped.pth", "model.pth", "headless.pth", "w.safetensors"):
        found = loaded(folder / name)
        assert found.weights == expected.weights and found.signature == expected.signature
        for (key, a), b in zip(found.layers.state_dict().items(), expected.layers.state_dict().values(), strict=True):
            assert torch.equal(a, b) and torch.equal(a, state[key])


def test_other_weights_have_another_checksum(full, file, folder):
    state = {k: v.clone() for k, v in full.state_dict().items()}
    state["layer4.1.bn2.bias"][-1] += 1e-3
    torch.save(state, folder / "other.pth")
    assert loaded(folder / "other.pth").weights != loaded(file).weights


def test_random_weights_are_asked_for_by_that_word():
    torch.manual_seed(0)
    first = backbones.build("timm:resnet18", SHAPE, weights="random")
    second = backbones.build("timm:resnet18", SHAPE, weights="random")
    assert first.weights == second.weights == ""
    assert not torch.equal(first.layers.conv1.weight, second.layers.conv1.weight)
    assert backbones.build("mlp", (5,), weights="random").num_features == 256


def test_pretrained_batch_norm_stays_as_it_is_and_a_random_one_is_trained(file):
    for backbone, kept in ((loaded(file), True), (backbones.build("timm:resnet18", SHAPE, weights="random"), False)):
        before = backbone.layers.bn1.running_mean.clone()
        backbone.train()
        assert backbone.training and backbone.layers.training
        backbone(torch.rand(2, *SHAPE))
        assert torch.equal(before, backbone.layers.bn1.running_mean) is kept


def test_images_of_any_size_are_resized_to_that_of_the_network(file):
    backbone = loaded(file)
    seen = []
    backbone.layers.register_forward_pre_hook(lambda module, args: seen.append(args[0]))
    with torch.no_grad():
        backbone(torch.rand(1, 3, 20, 30))
        backbone(torch.full((1, 3, 400, 300), 0.5))
    assert [x.shape for x in seen] == [(1, 3, 224, 224)] * 2
    assert all(x.is_contiguous(memory_format=torch.channels_last) for x in seen)
    expected = (0.5 - torch.tensor([0.485, 0.456, 0.406])) / torch.tensor([0.229, 0.224, 0.225])
    torch.testing.assert_close(seen[1], expected.view(1, 3, 1, 1).expand(1, 3, 224, 224))


def test_a_large_image_is_averaged_and_not_sampled(file):
    stripes = torch.zeros(1, 3, 896, 896)
    stripes[..., ::2] = 1
    prepared = loaded(file).prepare(stripes) * torch.tensor([0.229]) + torch.tensor([0.485])
    torch.testing.assert_close(prepared[:, 0, :, 2:-2], torch.full((1, 224, 220), 0.5), atol=0.02, rtol=0)


def test_another_resolution_for_convolutions_and_transformers(file, tmp_path):
    assert loaded(file, resolution=64).size == 64
    torch.save(timm.create_model("vit_tiny_patch16_224").state_dict(), tmp_path / "vit.pth")
    backbone = loaded(tmp_path / "vit.pth", "timm:vit_tiny_patch16_224", resolution=64)
    with torch.no_grad():
        assert backbone(torch.rand(2, *SHAPE)).shape == (2, 192)
    assert backbone.layers.pos_embed.shape[1] == 1 + 4 * 4
    assert backbone.signature != loaded(tmp_path / "vit.pth", "timm:vit_tiny_patch16_224").signature
    with pytest.raises(ValueError, match=r"mixer_s32_224 .*224.*64.*--resolution"):
        backbones.build("timm:mixer_s32_224", SHAPE, weights="random", resolution=64)


def test_resnet50_is_torchvision_s(tmp_path):
    """DomainBed, and so the paper, starts from torchvision's first ImageNet weights, whose file has these names."""
    torchvision = pytest.importorskip("torchvision")
    network = torchvision.models.resnet50().eval()
    torch.save(network.state_dict(), tmp_path / "resnet50-0676ba61.pth")
    backbone = loaded(tmp_path / "resnet50-0676ba61.pth", "resnet50")
    network.fc = nn.Identity()
    x = torch.rand(1, 3, 224, 224)
    mean, std = torch.tensor([0.485, 0.456, 0.406]), torch.tensor([0.229, 0.224, 0.225])
    with torch.no_grad():
        expected = network((x - mean.view(3, 1, 1)) / std.view(3, 1, 1))
        torch.testing.assert_close(backbone(x), expected, rtol=1e-3, atol=1e-4)
    assert backbones.pretrained("resnet50").name == "resnet50.tv_in1k"
    assert backbones.pretrained("small_cnn") is None and backbones.pretrained("mlp") is None


def test_names_that_timm_does_not_have_are_told_the_near_ones():
    with pytest.raises(
        ValueError, match=r"timm has no model 'vit_tiny_patch16_22': did you mean 'vit_tiny_patch16_224'"
    ):
        backbones.build("timm:vit_tiny_patch16_22", SHAPE)
    with pytest.raises(ValueError, match=r"timm has no model 'qqqqq': .*timm\.list_models"):
        backbones.build("timm:qqqqq", SHAPE)
    with pytest.raises(ValueError, match=r"timm has no weights 'best' of resnet18: there are .*a1_in1k"):
        backbones.build("timm:resnet18.best", SHAPE)


def test_what_does_not_fit_is_named_with_its_shape(full, folder):
    state = full.state_dict()
    del state["conv1.weight"]
    state |= {"bn1.weight": torch.zeros(3), "neck.weight": torch.zeros(2, 5)}
    torch.save(state, folder / "odd.pth")
    with pytest.raises(ValueError) as caught:
        loaded(folder / "odd.pth")
    assert str(caught.value) == (
        f"{folder / 'odd.pth'} does not fit resnet18: of its tensors, 1 missing (conv1.weight (64, 3, 7, 7)); "
        f"1 unexpected (neck.weight (2, 5)); 1 of another shape (bn1.weight (3,), expected (64,))"
    )
    with pytest.raises(
        ValueError, match=r"does not fit convnext_atto: of its tensors, \d+ missing \(stem.0.weight .*, …"
    ):
        loaded(folder / "odd.pth", "timm:convnext_atto")


class Trap:
    """A pickle that makes a file when it is loaded."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_a_file_that_would_run_code_is_refused_and_runs_none(tmp_path, how):
    bad, trap = tmp_path / "bad.pth", Trap(tmp_path / "sprung")
    if how == "torch":
        torch.save({"state_dict": {"conv1.weight": trap}}, bad)
    else:
        bad.write_bytes(pickle.dumps({"conv1.weight": trap}, protocol=2))
    with pytest.raises(ValueError, match=r"bad.pth: .* would run code \(.+\)"):
        loaded(bad)
    assert not (tmp_path / "sprung").exists()


def test_files_that_are_no_weights_are_named(tmp_path, file):
    with pytest.raises(FileNotFoundError, match=r"none.pth: there is no such file"):
        loaded(tmp_path / "none.pth")
    for name, content in {
        "cut.pth": file.read_bytes()[:5000],
        "text.pth": b"hello",
        "empty.pth": b"",
        "text.safetensors": b"hello" * 10,
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(ValueError, match=f"{name}: cannot be read as weights"):
            loaded(tmp_path / name)
    torch.save([1, 2], tmp_path / "list.pth")
    with pytest.raises(ValueError, match=r"list.pth: cannot be read as weights"):
        loaded(tmp_path / "list.pth")
    torch.save({"epoch": 3}, tmp_path / "none.pth")
    with pytest.raises(ValueError, match=r"none.pth: contains no named tensors"):
        loaded(tmp_path / "none.pth")


def test_a_backbone_without_pretrained_weights_takes_no_file(file):
    with pytest.raises(ValueError, match=r"'small_cnn'.*--weights"):
        backbones.build("small_cnn", SHAPE, weights=str(file))


def test_a_pretrained_network_has_one_width_and_takes_images(file):
    with pytest.raises(ValueError, match=r"timm:resnet18 .*--width"):
        backbones.build("timm:resnet18", SHAPE, 64, weights=str(file))
    with pytest.raises(ValueError, match=r"backbone 'timm:resnet18' takes images, but the data are vectors"):
        backbones.build("timm:resnet18", (9,), weights=str(file))


@pytest.fixture
def hub(monkeypatch, tmp_path):
    """A cache of the hub's files that is empty, and a hub that cannot be reached unless a test starts one."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    return monkeypatch


def test_without_a_network_the_choices_are_named_and_nothing_starts_at_random(hub):
    with pytest.raises(ValueError) as caught:
        backbones.build("timm:resnet18", SHAPE)
    for named in ("resnet18", "Connection refused", "--weights FILE", "--weights random", "efficientnet_lite0"):
        assert named in str(caught.value)


def test_a_model_that_was_never_trained_is_told_so(hub):
    never = next(name for name in timm.list_models("vit_*") if not timm.get_pretrained_cfg(name).hf_hub_id)
    with pytest.raises(ValueError, match=f"timm has no pretrained weights for {never}; choose --weights FILE"):
        backbones.build(f"timm:{never}", SHAPE)


def test_weights_come_from_the_hub_once(hub, full):
    content = save(full.state_dict())
    asked = []

    class Hub(http.server.BaseHTTPRequestHandler):
        def answer(self):
            asked.append((self.command, self.path))
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.send_header("ETag", '"0123"')
            self.send_header("X-Repo-Commit", 40 * "a")
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(content)

        do_HEAD = do_GET = answer

        def log_message(self, *args):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        address = f"http://127.0.0.1:{server.server_port}"
        hub.setattr(constants, "ENDPOINT", address)
        template = "/{repo_id}/resolve/{revision}/{filename}"
        hub.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", address + template)
        first = backbones.build("timm:resnet18.a1_in1k", SHAPE)
    finally:
        server.shutdown()
        server.server_close()
    assert ("GET", "/timm/resnet18.a1_in1k/resolve/main/model.safetensors") in asked
    assert torch.equal(first.layers.bn1.running_mean, full.bn1.running_mean) and first.weights
    again = backbones.build("timm:resnet18.a1_in1k", SHAPE)  # no server any more: from the cache
    assert again.weights == first.weights
