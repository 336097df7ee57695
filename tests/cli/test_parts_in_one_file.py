"""A second stage and a backbone are one file each: in the package or the user's own, in every command and page."""

import json
import sys

import numpy as np
import pytest

from crosstail import backbones, second_stages
from crosstail.testing import STAGE_CHECKS, check_file, save_separable

STAGE = '''
"""Mean of pairs: the class whose mean feature is nearest, each pair of it counted once (Me, 2026)."""

import numpy as np

from crosstail.second_stages import Features, FittedStage, LinearHead


def fit(features: Features) -> LinearHead:
    z, domains, classes = features.z[:], *features.sizes[1:]
    means = np.zeros((classes, z.shape[1]))
    for c in range(classes):
        of_pairs = [z[features.pair == d * classes + c] for d in range(domains)]
        means[c] = np.mean([own.mean(0) for own in of_pairs if len(own)] or [np.full(z.shape[1], 1e3)], axis=0)
    return LinearHead.of(2 * means, -(means**2).sum(1))


STAGE = FittedStage(fit=fit, head=LinearHead)
'''

BACKBONE = '''
"""Two layers on vectors, the second with a sine."""

import torch
from torch import nn

from crosstail.backbones import Backbone, require


class Sine(nn.Module):
    def forward(self, z):
        return torch.sin(z)


def build(input_shape, width=None):
    require("vectors", "sines", input_shape)
    layers = nn.Linear(input_shape[0], width or 12), Sine(), nn.Linear(width or 12, 9)
    return Backbone(nn.Sequential(*layers), 9)
'''

FILES = {"stage": (second_stages, "nearest", STAGE), "backbone": (backbones, "sines", BACKBONE)}
FIT = "fit v.npz --algorithm erm --width 8 --steps 20 --batch-size 8 --evaluations 2 --hp lr=0.01"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Both files, each in a folder of its own, and vectors."""
    monkeypatch.chdir(tmp_path)
    save_separable(tmp_path / "v.npz", [[60, 40, 9], [50, 20, 30]])
    for kind, (_, name, source) in FILES.items():
        (tmp_path / kind).mkdir()
        (tmp_path / kind / f"{name}.py").write_text(source)


@pytest.fixture
def in_package(files, tmp_path, monkeypatch):
    for kind, (package, _, _) in FILES.items():
        monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path / kind)])
    yield
    for package, name, _ in FILES.values():
        sys.modules.pop(f"{package.__name__}.{name}", None)


@pytest.mark.usefixtures("files")
@pytest.mark.parametrize("check", STAGE_CHECKS, ids=lambda check: check.__name__)
def test_the_stage_keeps_the_promises_of_the_others(check, tmp_path):
    check(f"erm:{tmp_path}/stage/nearest.py")


@pytest.mark.usefixtures("files")
def test_the_backbone_keeps_the_promises_of_the_others():
    check_file("./backbone/sines.py")


@pytest.mark.usefixtures("in_package")
def test_in_the_packages_both_are_listed_and_used(crosstail, tmp_path):
    for kind, name in (("second-stages", "nearest"), ("backbones", "sines")):
        assert name in [row["name"] for row in json.loads(crosstail(f"list {kind} --json").out)]
    crosstail(f"{FIT} --second-stage nearest --backbone sines --out run").ok()
    assert "Second stage: nearest, on fixed features (Mean of pairs" in (tmp_path / "run/model_card.md").read_text()
    assert not list((tmp_path / "run").rglob("*.py"))


@pytest.mark.usefixtures("files", "full_page")
def test_named_by_path_both_are_fitted_reported_predicted_and_exported(crosstail, refused, tmp_path):
    crosstail(f"{FIT} --second-stage stage/nearest.py --backbone backbone/sines.py --out run").ok()
    result = json.loads((tmp_path / "run/result.json").read_text())
    assert result["spec"]["second_stage"] == "stage/nearest.py" and result["test"]["pair_average"] > 0.6
    for page in ("report.html", "model_card.md"):
        text = (tmp_path / "run" / page).read_text()
        assert "stage/nearest.py" in text and "backbone/sines.py" in text
    np.save("new.npy", np.load("v.npz")["x"][:5])
    for words in (
        "predict run new.npy --out new.csv",
        "export run --out model.onnx",
        "evaluate run v.npz --split test",
    ):
        assert "run/second_stage/nearest.py" in refused(words).replace("run/ ", "run/")
        crosstail(f"{words} --trust").ok()
    crosstail("report run --out report").ok()
    assert "stage/nearest.py" in (tmp_path / "report/index.html").read_text()


@pytest.mark.usefixtures("files")
def test_a_race_takes_a_stage_as_part_of_a_method(crosstail, refused, tmp_path):
    words = "race v.npz --backbone backbone/sines.py --steps 8 --trials 1 --seeds 1 --workers 1 --algorithm erm"
    crosstail(f"{words} --algorithm erm:stage/nearest.py --out race").ok()
    board = json.loads((tmp_path / "race/race.json").read_text())["leaderboard"]
    assert {row["method"] for row in board} == {"erm", "erm:stage/nearest.py"}
    assert "erm:stage/nearest.py" in (tmp_path / "race/report.html").read_text()
    assert "stage/none.py: cannot be read" in refused(f"{words} --algorithm erm:stage/none.py --out other")
    assert "backbone/none.py: cannot be read" in refused(f"{FIT} --backbone backbone/none.py --out other")
