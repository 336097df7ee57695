"""A kind of input is one file, and its backbone another: 1-D signals, in every command that looks at inputs."""

import json
import sys

import numpy as np
import pytest

from crosstail import backbones
from crosstail.data import inputs

KIND = '''
"""Signals of one channel, such as audio: an array (N, T) of int16."""

import numpy as np
import torch

from crosstail.data.inputs import InputKind

KIND = InputKind(
    holds=lambda x: x.dtype == np.int16 and x.ndim == 2,
    expects="int16 signals (N, T)",
    noun="signal",
    backbone="waves",
    rank=2,
    shape=lambda x: (1, x.shape[1]),
    tensor=lambda x: torch.from_numpy(np.divide(x, np.float32(1 << 15))[:, None]),
    scaled=lambda x: x[:, None] / (1 << 15),
    example=lambda generator, shape: generator.integers(-(1 << 15), 1 << 15, (shape[0], shape[2]), np.int16),
    described=lambda shape: f"signals of {shape[1]:,} values",
)
'''

BACKBONE = '''
"""One convolution over time."""

from torch import nn

from crosstail.backbones import Backbone


def build(input_shape, width=None):
    width = width or 16
    layers = nn.Conv1d(input_shape[0], width, 9), nn.ReLU(), nn.AdaptiveAvgPool1d(1), nn.Flatten()
    return Backbone(nn.Sequential(*layers), width)
'''

CLASSES, LENGTH = ("high", "low", "middle"), 64


def signals(n, seed):
    """Sine waves whose frequency is the class, louder in one of two domains."""
    rng = np.random.default_rng(seed)
    y, domain = rng.integers(0, 3, n), np.arange(n) % 2
    wave = np.sin(np.array([2.0, 0.2, 0.8])[y, None] * np.arange(LENGTH) + rng.uniform(0, 6, (n, 1)))
    loud = np.array([6_000, 20_000])[domain, None]
    x = (loud * wave + rng.normal(0, 300, (n, LENGTH))).astype(np.int16)
    return {"x": x, "y": np.array(CLASSES)[y], "domain": np.array(["lagos", "quito"])[domain]}


@pytest.fixture
def one_file_more(tmp_path, monkeypatch):
    """A file in a folder that is added to each of the two packages."""
    for package, name, source in ((inputs, "signals", KIND), (backbones, "waves", BACKBONE)):
        folder = tmp_path / package.__name__
        folder.mkdir()
        (folder / f"{name}.py").write_text(source)
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    yield
    for name in ("crosstail.data.inputs.signals", "crosstail.backbones.waves"):
        sys.modules.pop(name, None)


def test_without_the_file_signals_are_refused(refused, tmp_path):
    np.savez(tmp_path / "signals.npz", **signals(90, 0))
    said = refused("fit signals.npz --out run")
    assert "x is int16 (90, 64), expected uint8 images (N, H, W, 3) or float embeddings (N, F)" in said


@pytest.mark.usefixtures("one_file_more")
def test_signals_are_audited_fitted_reported_predicted_and_exported(crosstail, tmp_path):
    data, new = signals(240, 0), signals(40, 1)
    data["x"][1], data["y"][1] = data["x"][0], data["y"][0]  # in another domain
    np.savez(tmp_path / "signals.npz", **data)
    np.save(tmp_path / "new.npy", new["x"])

    audit = json.loads(crosstail("audit signals.npz --json").out)
    assert audit["inputs"]["kind"] == "signals" and audit["inputs"]["width"] == LENGTH
    assert [sample["row"] for sample in audit["duplicates"][0]["samples"]] == [0, 1]
    assert "240 signals" in crosstail("audit signals.npz --out audit.html").out

    crosstail("fit signals.npz --steps 150 --hp lr=0.01 --evaluations 2 --out run").ok()
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert (result["spec"]["backbone"], result["spec"]["tune"]) == ("waves", "all")
    assert result["input_shape"] == [1, LENGTH] and result["test"]["average"] > 0.9
    assert "A classifier of signals of 64 values into 3 classes" in (tmp_path / "run/model_card.md").read_text()

    evaluated = crosstail("evaluate run signals.npz --split test --json")
    assert json.loads(evaluated.out)["average"] == pytest.approx(result["test"]["average"], abs=1e-6)
    crosstail("predict run new.npy --out new.json").ok()
    told = [row["class"] for row in json.loads((tmp_path / "new.json").read_text())]
    assert np.mean(np.array(told) == new["y"]) > 0.9
    crosstail("export run --out model.pt2 --format torch").ok()
    assert json.loads((tmp_path / "model.pt2.json").read_text())["input"]["shape"] == ["batch", LENGTH]
    crosstail("report run --out report").ok()


@pytest.mark.usefixtures("one_file_more")
def test_what_takes_other_inputs_says_so(refused, tmp_path):
    np.savez(tmp_path / "signals.npz", **signals(90, 0))
    said = refused("fit signals.npz --backbone small_cnn --out run")
    assert "backbone 'small_cnn' takes images, but the data are samples of shape (1, 64)" in said
    assert "signals: signals cannot be augmented" in refused("fit signals.npz --augment --out run")
