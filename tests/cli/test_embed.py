"""crosstail embed, and frozen backbones with user-provided weights: from images to a portable model."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import timm
import torch

from crosstail import data
from crosstail.training import embedding
from crosstail.training.folder import RunFolder

SHORT = "--width 8 --steps 30 --batch-size 8 --evaluations 2"
TINY = "--backbone timm:mobilenetv3_small_050 --resolution 32"


@pytest.fixture
def photos(make_photos):
    return make_photos(8)


@pytest.fixture
def weights(crosstail):
    torch.manual_seed(0)
    torch.save(timm.create_model("mobilenetv3_small_050").state_dict(), "w.pth")
    return "w.pth"


def test_from_photos_to_vectors_to_a_model(crosstail, photos, weights):
    done = crosstail(f"embed {photos} {TINY} --weights {weights} --out v.npz")
    assert done.code == 0 and "32 × 1,024 numbers in v.npz" in done.err
    vectors, images = data.load("v.npz"), data.load(photos)
    assert (vectors.classes, vectors.domains) == (images.classes, images.domains)
    for field in ("y", "domain", "split"):
        np.testing.assert_array_equal(getattr(vectors, field), getattr(images, field))
    crosstail(f"fit v.npz --out run {SHORT}").ok()
    crosstail(f"fit {photos} {TINY} --weights {weights} --tune none --out frozen {SHORT}").ok()
    same = [RunFolder(Path(run)).finished_result().test.hits for run in ("run", "frozen")]
    assert same[0] == same[1]


def test_groups_are_kept(crosstail, photos, weights):
    crosstail(f"embed {photos} {TINY} --weights {weights} --group-by '[0-7]' --out v.npz").ok()
    vectors, images = data.load("v.npz"), data.load(photos, group_by="[0-7]")
    np.testing.assert_array_equal(vectors.group, images.group)
    np.testing.assert_array_equal(vectors.split, images.split)
    assert len(set(vectors.group.tolist())) <= 8


def test_patients_that_leak_are_named_before_the_vectors_are_used(crosstail, photos, weights):
    files = [path.relative_to(photos) for path in sorted(Path(photos).glob("*/*/*.jpg"))]
    rows = [f"{path},{path.parts[0]},{path.parts[1]},p{i // 2}" for i, path in enumerate(files)]
    Path(photos, "m.csv").write_text("\n".join(["path,domain,label,patient", *rows]), encoding="utf-8")
    done = crosstail(f"embed {photos}/m.csv {TINY} --weights {weights} --out v.npz")
    command = done.err.partition("Next: crosstail ")[2]
    assert command.startswith("embed ") and "--column group=patient" in command and crosstail(command).code == 0
    assert data.load("v-2.npz").group is not None


def test_views_are_more_inputs_and_not_more_samples(crosstail, photos, weights):
    crosstail(f"embed {photos} {TINY} --weights {weights} --views 2 --out v.npz").ok()
    vectors = data.load("v.npz")
    assert vectors.x.shape == (32, 3, 1024)
    results = {}
    for run, words in (("a", "v.npz"), ("b", f"{photos} {TINY} --weights {weights} --tune none --views 2")):
        done = crosstail(f"fit {words} --out {run} {SHORT} --second-stage retrain --json").ok()
        results[run] = json.loads(done.out)
    assert results["a"]["counts"] == results["b"]["counts"] == vectors.counts("train").tolist()
    assert results["a"]["test"] == results["b"]["test"] and results["a"]["input_shape"] == [1024]
    done = crosstail("evaluate a v.npz --split test --json")
    assert json.loads(done.out)["hits"] == results["a"]["test"]["hits"]
    crosstail("audit v.npz").ok()


def test_a_linear_head_is_a_classifier_alone(crosstail, photos, weights):
    done = crosstail(
        f"fit {photos} {TINY} --weights {weights} --tune none --head linear --out run {SHORT} --second-stage retrain"
    )
    assert done.code == 0, done.err
    model = RunFolder(Path("run")).load("model.pt")
    assert {name: tuple(value.shape) for name, value in model.items() if name.startswith("head")} == {
        "head.weight": (2, 1024),
        "head.bias": (2,),
    }
    assert not any(name.startswith("backbone") for name in model)
    crosstail("predict run photos/day").ok()


def test_a_frozen_model_predicts_where_its_weights_are_or_says_what_is_missing(crosstail, photos, weights):
    fit = f"fit {photos} {TINY} --weights {weights} --tune none --out run {SHORT}"
    crosstail(fit).ok()
    expected = crosstail("predict run photos").ok()
    checksum = RunFolder(Path("run")).finished_result().weights
    shutil.move("w.pth", "moved.pth")
    done = crosstail("predict run photos")
    said = " ".join(done.err.split())
    assert done.code == 2 and "w.pth: " in said and "timm:mobilenet" in said
    assert checksum in said and "--weights FILE" in said
    assert crosstail("predict run photos --weights moved.pth") == expected
    crosstail("evaluate run photos --split test --weights moved.pth").ok()
    torch.manual_seed(1)
    torch.save(timm.create_model("mobilenetv3_small_050").state_dict(), "w.pth")
    done = crosstail("predict run photos")
    assert done.code == 2 and checksum in done.err


def test_a_finetuned_model_has_all_of_its_weights(crosstail, photos, weights, refused):
    short = "--steps 1 --batch-size 2 --evaluations 1"
    crosstail(f"fit {photos} {TINY} --weights {weights} --tune all --out run {short}").ok()
    assert RunFolder(Path("run")).spec().hparams["lr"] == 5e-5
    Path("w.pth").unlink()
    crosstail("predict run photos").ok()
    assert "--weights" in refused("predict run photos --weights w.pth")


@pytest.fixture
def asked(asked, monkeypatch):
    monkeypatch.setattr(
        "crosstail.workflows.fit.load_inputs", lambda spec, source: None
    )  # resnet50 would be downloaded
    monkeypatch.setattr("crosstail.workflows.fit.tunes", lambda spec: False)  # and is not measured
    return asked


@pytest.mark.parametrize(
    ("words", "tune", "hparams"),
    [
        ("", "none", {"lr": 1e-3}),
        ("--backbone resnet50", "none", {"lr": 1e-3}),
        ("--backbone resnet50 --tune all", "all", {"lr": 5e-5}),
        ("--backbone resnet50 --tune all --hp lr=0.01 --hp weight_decay=0.1", "all", {"lr": 0.01, "weight_decay": 0.1}),
        ("--backbone resnet50 --tune all --algorithm dann", "all", {"lr": 5e-5, "discriminator_lr": 5e-5}),
        ("--backbone timm:convnext_atto --weights random", "all", {"lr": 1e-3}),
        ("--backbone small_cnn", "all", {"lr": 1e-3}),
    ],
)
def test_the_learning_rate_follows_the_backbone(crosstail, photos, asked, words, tune, hparams):
    crosstail(f"fit {photos} --out run {words} --json").ok()
    assert asked[0].tune == tune and hparams.items() <= asked[0].hparams.items()


MISTAKES = {
    "embed photos --out v.npy": "--out v.npy: expected a name that ends in .npz",
    "embed v.npz --out w.npz": "v.npz already contains vectors",
    "embed photos --out w.npz --backbone small_cnn": "backbone 'small_cnn' has no pretrained weights for --tune none",
    "embed photos --out w.npz --backbone timm:resnet1": "timm has no model 'resnet1': did you mean",
    "embed photos --out w.npz --views -1": "views is -1, expected 0 or more",
    "fit photos --out run --backbone timm:resnet18 --weights none.pth": "none.pth: there is no such file",
    "fit photos --out run --head linear --tune all": "--head and --views need --tune none or last",
    "fit v.npz --out run --resolution 32": "--resolution is for image files",
    "fit v.npz --out run --weights w.pth": "remove --weights",
}


@pytest.mark.parametrize(("words", "message"), MISTAKES.items(), ids=MISTAKES)
def test_a_mistake_is_named(crosstail, photos, vectors, words, message):
    done = crosstail(words)
    assert done.code == 2 and done.out == "" and len(done.err.splitlines()) <= 2
    assert message in " ".join(done.err.split()) and not Path("run").exists()


def test_a_lack_of_memory_says_what_to_lower(crosstail, vectors):
    done = crosstail(f"fit {vectors} --algorithm erm --out run --width 1000000000000")
    assert done.code == 1
    said = " ".join(done.err.split())
    assert said.startswith("error: out of memory; reduce --batch-size (now 24 per domain), --width")


def test_features_are_collected_on_disk_and_nothing_but_the_file_stays(crosstail, photos, monkeypatch):
    seen, embed = [], embedding.embed
    monkeypatch.setattr(embedding, "embed", lambda *a, into, **more: seen.append(into) or embed(*a, into=into, **more))
    crosstail(f"embed {photos} --out new/e.npz").ok()
    (into,) = seen
    assert isinstance(into, np.memmap) and [path.name for path in Path("new").iterdir()] == ["e.npz"]
    with np.load("new/e.npz") as file:
        np.testing.assert_array_equal(file["x"], into[:, 0])
