"""Exported files say what the run says, for any number of inputs, without our code, and nothing else is in them."""

import json
import logging
import subprocess
import sys
import warnings

import numpy as np
import pytest
import timm
import torch

from crosstail import data
from crosstail.prediction import export as exporting
from crosstail.prediction.export import Differs, export
from crosstail.prediction.familiar import Familiar
from crosstail.prediction.predictor import Predictor
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run

SHORT = {"steps": 20, "batch_size": 6, "evaluations": 1}
WITHOUT_US = """
import sys
sys.modules["crosstail"] = None
import numpy as np
name, *folders = sys.argv[1:]
for folder in folders:
    if name == "m.onnx":
        import onnxruntime
        session = onnxruntime.InferenceSession(f"{folder}/{name}")
        names = [i.name for i in session.get_inputs()]
        assert names in (["x"], ["x", "site"]) and {i.shape[0] for i in session.get_inputs()} == {"batch"}
        unknown = lambda x: {"site": np.full(len(x), -1)} if "site" in names else {}
        model = lambda x: session.run(None, {"x": x, **unknown(x)})[0]
        assert "torch" not in sys.modules
    else:
        import torch
        loaded = torch.export.load(f"{folder}/{name}")
        more = len(loaded.graph_signature.user_inputs) - 1
        loaded = loaded.module()
        model = lambda x: loaded(torch.from_numpy(x), *[torch.full((len(x),), -1)] * more)[0].detach().numpy()
    x = np.load(f"{folder}/x.npy")
    np.save(f"{folder}/p.npy", np.concatenate([model(x[:1]), model(x[1:4]), model(x[4:])]))
"""
FORMATS = {"onnx": "m.onnx", "torch": "m.pt2"}


def save_images(path, size):
    """Bright and dark pictures in two domains."""
    rng = np.random.default_rng(0)
    domain, y = np.divmod(np.arange(48) % 4, 2)
    x = rng.integers(0, 120, (48, size, size, 3)) + 120 * y[:, None, None, None] + 10 * domain[:, None, None, None]
    np.savez(path, x=x.astype(np.uint8), y=y, domain=domain, classes=["dark", "bright"])


def save_mixed(path):
    """Vectors in which the second class of one domain looks like the first of the other."""
    rng = np.random.default_rng(0)
    domain, y = np.divmod(np.arange(240) % 4, 2)
    x = rng.normal(size=(240, 6)) + 2 * (y + domain)[:, None]
    np.savez(path, x=x.astype(np.float32), y=y, domain=domain)


def only_probabilities(said):
    return lambda x: said({"x": x})[0]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """One run on vectors, two that use the domain, one on images, one on frozen features of images."""
    root = tmp_path_factory.mktemp("runs")
    save_separable(root / "vectors.npz")
    save_images(root / "images.npz", 12)
    save_mixed(root / "mixed.npz")
    torch.save(timm.create_model("test_efficientnet").state_dict(), root / "w.pth")
    small = {"backbone": "timm:test_efficientnet", "weights": str(root / "w.pth")}
    for name, source, words in (
        ("vectors", "vectors", {"algorithm": "dann", "backbone": "mlp", "width": 8}),
        ("sites", "vectors", {"algorithm": "mtl", "backbone": "mlp", "width": 8}),
        ("blend", "mixed", {"algorithm": "frozen", "backbone": "identity", "second_stage": "blend"}),
        ("images", "images", {"algorithm": "boda", "backbone": "small_cnn", "width": 8, "second_stage": "retrain"}),
        ("frozen", "images", {"algorithm": "mtl", "width": 8, "tune": "none", **small}),
    ):
        train_run(RunSpec(dataset=str(root / f"{source}.npz"), **words, **SHORT), root / name)
    return root


@pytest.fixture(scope="module", params=FORMATS)
def exported(request, runs, tmp_path_factory):
    """A folder with a folder for each run: the exported file, inputs, and what a process without our code says."""
    root, name = tmp_path_factory.mktemp(request.param), FORMATS[request.param]
    kinds = ["vectors", "images", "frozen", "sites"]
    for kind in kinds:
        (root / kind).mkdir()
        dataset = data.load(Predictor(runs / kind).run.result.spec.dataset)
        site = "1" if kind == "sites" else None
        check = export(runs / kind, root / kind / name, request.param, dataset=dataset, site=site)
        assert check.inputs == f"the test samples of {dataset.name}"
        assert check.samples == len(dataset.rows("test")) and check.largest_difference < 1e-5
        np.save(root / kind / "x.npy", dataset.x[:9])
    subprocess.run([sys.executable, "-c", WITHOUT_US, name, *(root / kind for kind in kinds)], check=True)
    return root


@pytest.mark.parametrize("kind", ["vectors", "images", "frozen"])
def test_the_file_says_what_the_run_says(runs, exported, kind):
    expected = Predictor(runs / kind).probabilities(np.load(exported / kind / "x.npy"))
    np.testing.assert_allclose(np.load(exported / kind / "p.npy"), expected, atol=1e-5)
    files = {file.name for file in (exported / kind).iterdir()}
    assert any(files == {name, f"{name}.json", "p.npy", "x.npy"} for name in FORMATS.values())


def test_a_site_is_fixed_in_the_file(runs, exported):
    predictor, x = Predictor(runs / "sites"), np.load(exported / "sites" / "x.npy")
    found, z = np.load(exported / "sites" / "p.npy"), predictor.algorithm.backbone(torch.from_numpy(x))
    own = torch.cat([z, predictor.algorithm.domain_embedding[1].expand_as(z)], 1)
    np.testing.assert_allclose(
        found,
        (float(predictor.calibration.sharpness_of(predictor.run.result.domains)[1]) * predictor.algorithm.head(own))
        .softmax(1)
        .detach()
        .numpy(),
        atol=1e-5,
    )
    assert np.abs(found - predictor.probabilities(x)).max() > 1e-3
    (card,) = (json.loads(file.read_text(encoding="utf-8")) for file in (exported / "sites").glob("*.json"))
    assert card["site"] == "1" and card["known"]["test"]["totals"] == predictor.run.result.test.totals


@pytest.mark.parametrize(("format", "name"), [("onnx", "m.onnx"), ("torch", "m.pt2")])
def test_a_site_is_fixed_in_the_head_of_a_second_stage(runs, tmp_path, format, name):
    predictor = Predictor(runs / "blend")
    assert predictor.run.result.known.test.average > predictor.run.result.test.average + 0.2
    export(runs / "blend", tmp_path / name, format, site="1")
    read = only_probabilities(exporting.WRITERS[format][1](tmp_path / name))
    x = np.random.default_rng(1).normal(2, 1, (9, 6)).astype(np.float32)  # where both domains have samples
    model = predictor.algorithm
    with torch.no_grad():
        scores = model.head(model.backbone(torch.from_numpy(x)), torch.ones(9, dtype=torch.int64))
    expected = (float(predictor.calibration.sharpness_of(predictor.run.result.domains)[1]) * scores).softmax(1)
    np.testing.assert_allclose(read(x), expected, atol=1e-5)
    assert np.abs(read(x) - predictor.probabilities(x)).max() > 0.1


@pytest.mark.parametrize(("format", "name"), FORMATS.items())
def test_comparing_keeps_no_activations(runs, tmp_path, format, name):
    export(runs / "frozen", tmp_path / name, format)
    kept = []
    with torch.autograd.graph.saved_tensors_hooks(kept.append, lambda tensor: tensor):
        exporting.WRITERS[format][1](tmp_path / name)(
            {"x": np.zeros((3, 12, 12, 3), np.uint8), "site": np.arange(3) - 1}
        )
    assert not kept


def test_the_exporter_says_nothing_and_later_warnings_are_shown_again(runs, tmp_path, monkeypatch, capfd, recwarn):
    def talkative(*given, **more):
        for logger in ("onnxscript.optimizer._constant_folding", "torch.onnx"):
            logging.getLogger(logger).warning("Skipping constant folding")
        warnings.warn("an operator is not supported", stacklevel=1)
        return write(*given, **more)

    write = torch.onnx.export
    monkeypatch.setattr(torch.onnx, "export", talkative)
    before = logging.getLogger("onnxscript").level
    export(runs / "vectors", tmp_path / "m.onnx", "onnx")
    assert capfd.readouterr() == ("", "") and not recwarn.list
    assert logging.getLogger("onnxscript").level == before


def test_without_a_site_the_domain_is_unknown(runs, tmp_path):
    for run, known in (("sites", True), ("vectors", False)):
        export(runs / run, tmp_path / "m.pt2", "torch")
        card = json.loads((tmp_path / "m.pt2.json").read_text(encoding="utf-8"))
        assert card["site"] is None and ("known" in card) == known
    check = export(runs / "vectors", tmp_path / "m.pt2", "torch", site="1")  # dann ignores it
    assert check.notes == ["dann does not use the site; only the temperature of its probabilities does"]
    with pytest.raises(ValueError, match=r"'2'.*0, 1"):
        export(runs / "sites", tmp_path / "other.pt2", "torch", site="2")
    assert not (tmp_path / "other.pt2").exists()


def test_the_card_says_what_goes_in_and_out(runs, tmp_path):
    export(runs / "images", tmp_path / "m.pt2", "torch")
    card = json.loads((tmp_path / "m.pt2.json").read_text(encoding="utf-8"))
    assert card["classes"] == ["dark", "bright"] and card["format"] == "torch"
    assert card["input"]["type"] == "uint8" and card["input"]["shape"] == ["batch", 12, 12, 3]
    assert "12 by 12 pixels" in card["input"]["how"]
    assert card["output"]["shape"] == ["batch", 2]
    assert card["compared"]["inputs"] == "random inputs" and card["compared"]["samples"] == 65
    assert card["trained"]["domains"] == ["0", "1"] and card["trained"]["spec"]["algorithm"] == "boda"
    assert card["test"]["totals"] == Predictor(runs / "images").run.result.test.totals


def test_what_only_training_needs_is_not_in_the_file(runs, tmp_path):
    export(runs / "vectors", tmp_path / "m.pt2", "torch")
    kept = {name.split(".")[1] for name in torch.export.load(tmp_path / "m.pt2").state_dict if "." in name}
    assert kept == {"backbone", "head"}
    assert any("discriminator" in name for name in Predictor(runs / "vectors").algorithm.state_dict())


@pytest.mark.parametrize("wrong", [lambda p: p + 2e-4, lambda p: p[:, ::-1], lambda p: p * np.nan])
def test_a_file_that_differs_is_not_kept(runs, tmp_path, monkeypatch, wrong):
    write, read = exporting.WRITERS["torch"]
    spoilt = write, lambda file: lambda given: [wrong(read(file)(given)[0])]
    monkeypatch.setitem(exporting.WRITERS, "torch", spoilt)
    with pytest.raises(Differs, match="differs from the run on random inputs"):
        export(runs / "vectors", tmp_path / "m.pt2", "torch")
    assert list(tmp_path.iterdir()) == []


def test_the_same_class_is_part_of_the_comparison(runs, tmp_path, monkeypatch):
    ours, theirs = (np.float32([0.33334, 0.33333, 0.33333]), np.float32([0.33333, 0.33334, 0.33333]))
    monkeypatch.setattr(Predictor, "scored", lambda self, z, domain: np.tile(np.log(ours), (len(z), 1)))
    write, _ = exporting.WRITERS["torch"]
    spoilt = write, lambda file: lambda given: [np.tile(theirs, (len(given["x"]), 1))]
    monkeypatch.setitem(exporting.WRITERS, "torch", spoilt)
    with pytest.raises(Differs):
        export(runs / "vectors", tmp_path / "m.pt2", "torch")


def test_mistakes_get_a_sentence(runs, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="unknown format 'tflite': there are onnx, torch"):
        export(runs / "vectors", tmp_path / "m", "tflite")
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"pip install 'crosstail\[export\]'"):
        export(runs / "vectors", tmp_path / "m", "onnx")


@pytest.mark.parametrize(
    ("name", "format"), [("m.tflite", "onnx"), ("m", "onnx"), ("m.onnx", "torch"), ("m.pt2", "onnx")]
)
def test_a_file_is_not_named_as_another_format(runs, tmp_path, name, format):
    with pytest.raises(ValueError, match=rf"{name}: .*\.onnx.*\.pt2"):
        export(runs / "vectors", tmp_path / name, format)
    assert not list(tmp_path.glob("m*"))


@pytest.mark.parametrize("name", ["model.pt", "result.json", "result", "model_card"])
def test_a_file_of_the_run_is_not_overwritten(runs, name):
    run = runs / "vectors"
    (run / "model_card.md").write_text("card")
    before = {file: file.read_bytes() for file in run.iterdir() if file.is_file()}
    with pytest.raises(ValueError, match=f"--out .*{name}"):
        export(run, run / name, "torch")
    assert {file: file.read_bytes() for file in run.iterdir() if file.is_file()} == before


def test_an_export_into_the_folder_of_the_run_may_be_repeated(runs):
    for _ in range(2):
        export(runs / "vectors", runs / "vectors" / "m.pt2", "torch")
    assert Predictor(runs / "vectors").classes


@pytest.mark.parametrize(("format", "name"), FORMATS.items())
def test_a_file_says_what_is_unlike_anything_in_training(runs, tmp_path, format, name):
    export(runs / "blend", tmp_path / name, format)
    card = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    x = np.random.default_rng(1).normal(2, 1, (60, 6)).astype(np.float32)
    x[::3] += 30
    site, predictor = (np.arange(60) % 3 - 1), Predictor(runs / "blend")
    said = exporting.WRITERS[format][1](tmp_path / name)({"x": x, "site": site})
    found = dict(zip(card["outputs"], said, strict=True))["unlike_training"]
    far = predictor.distances(predictor.features(x), site)
    np.testing.assert_array_equal(found, far > Familiar.of(predictor).limits[site])
    assert found[::3].all() and found.mean() < 0.6
