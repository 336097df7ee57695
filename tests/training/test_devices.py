"""Two processes that share each batch give the result of one; chunks, bfloat16 and compilation."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from crosstail import algorithms, backbones, discovery
from crosstail.algorithms.erm import ERM
from crosstail.data import DomainBatch, DomainBatches, load
from crosstail.prediction.predictor import Predictor
from crosstail.training.devices import Devices
from crosstail.training.evaluation import features
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.model import load_model

SHARED = [n for n in discovery.names("crosstail.algorithms") if not algorithms.find(n).unshared]


@pytest.fixture
def spec(tiny):
    return tiny([[20, 3, 9], [2, 14, 0], [5, 5, 5]], hparams={"lr": 0.01})


def accuracies(folder: Path):
    """Losses and accuracies of all evaluations, and the weights."""
    records = RunFolder(folder).records()
    return [(r.stage, r.step, r.losses, r.validation, r.test) for r in records]


TWO = """
import msgspec, sys
from pathlib import Path
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.devices import Devices

for line in Path(sys.argv[1]).read_text().splitlines():
    spec = msgspec.json.decode(line, type=RunSpec)
    train_run(spec, Path(sys.argv[2]) / spec.key, devices=Devices("cpu", 2))
"""


@pytest.fixture
def run_by_two(tmp_path):
    def run(specs):
        (tmp_path / "two.py").write_text(TWO)
        (tmp_path / "specs.jsonl").write_bytes(b"".join(msgspec.json.encode(s) + b"\n" for s in specs))
        command = [sys.executable, str(tmp_path / "two.py"), str(tmp_path / "specs.jsonl"), str(tmp_path / "two")]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return [tmp_path / "two" / spec.key for spec in specs]

    return run


def test_two_processes_give_the_losses_and_accuracies_of_one(spec, tmp_path, run_by_two):
    spec = replace(spec, steps=6, evaluations=2)
    # What only defines `losses` is a function of the same features: some stand for all.
    own_step = [name for name in SHARED if algorithms.find(name).update is not ERM.update]
    names = [*own_step, "erm", "coral", "boda_m", "mtl", "group_dro", "causirl_coral", "gcl", "selfreg", "trm", "bcl"]
    names += ["arm", "tally"]
    specs = [replace(spec, algorithm=name) for name in names]
    specs += [
        replace(spec, second_stage="retrain", average="moving"),
        replace(spec, second_stage="ncm", trace=True),
        replace(spec, second_stage="lws"),
        replace(spec, algorithm="boda+coral", hparams={"lr": 0.01, "dropout": 0.5}),
        replace(spec, algorithm="boda_m", hparams={"lr": 0.01, "refresh": 3}),
    ]
    for one, folder in zip(specs, run_by_two(specs), strict=True):
        train_run(one, tmp_path / "one" / one.key)
        for expected, found in zip(accuracies(tmp_path / "one" / one.key), accuracies(folder), strict=True):
            assert found[:2] == expected[:2], one.algorithm
            for of_one, of_two in zip(expected[3:], found[3:], strict=True):
                assert of_two.log_loss == pytest.approx(of_one.log_loss, rel=1e-5), one.algorithm
                assert msgspec.structs.replace(of_two, log_loss=of_one.log_loss) == of_one, one.algorithm
            assert found[2] == pytest.approx(expected[2], rel=1e-5, abs=1e-6), one.algorithm
        alpha, shared_alpha = (
            RunFolder(f).finished_result().transferability.alpha for f in (tmp_path / "one" / one.key, folder)
        )
        assert shared_alpha == pytest.approx(alpha, rel=1e-3), one.algorithm
        whole, shared = (RunFolder(f).load("model.pt") for f in (tmp_path / "one" / one.key, folder))
        for name, value in whole.items():
            torch.testing.assert_close(shared[name], value, rtol=1e-3, atol=1e-4, msg=f"{one.algorithm}: {name}")


@pytest.mark.parametrize("name", [n for n in discovery.names("crosstail.algorithms") if n not in SHARED])
def test_an_algorithm_that_cannot_be_shared_is_refused_before_anything_starts(spec, tmp_path, name):
    with pytest.raises(ValueError, match=f"{name} cannot be trained by several processes: "):
        train_run(replace(spec, algorithm=name), tmp_path / "run", devices=Devices("cpu", 2))
    assert not (tmp_path / "run").exists()


def test_a_batch_that_cannot_be_shared_is_refused(spec, tmp_path):
    with pytest.raises(ValueError, match="a batch of 4 per domain cannot be shared evenly by 3 processes"):
        DomainBatches(load(spec.dataset), batch_size=4, share=(0, 3))


@pytest.mark.parametrize("name", ["erm", "boda", "coral"])
def test_chunks_change_the_memory_and_not_the_accuracies(spec, tmp_path, name):
    spec = replace(spec, algorithm=name)
    train_run(spec, tmp_path / "whole")
    train_run(spec, tmp_path / "chunks", devices=Devices(chunks=3))
    for expected, found in zip(accuracies(tmp_path / "whole"), accuracies(tmp_path / "chunks"), strict=True):
        assert found[3:] == expected[3:] and found[2] == pytest.approx(expected[2], rel=1e-5)


def test_chunks_keep_the_activations_of_one_part_only():
    def kept(chunks):
        backbone = backbones.build("small_cnn", (3, 16, 16), 8)
        algorithm = algorithms.build("erm", backbone, algorithms.Task(torch.ones(1, 2))).train()
        algorithm.chunks = chunks
        sizes = []
        with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
            algorithm.features(DomainBatch(torch.rand(12, 3, 16, 16), torch.zeros(12).long(), torch.zeros(12).long()))
        return sum(sizes)

    assert kept(4) < kept(1) / 10


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="torch.compile needs a C++ compiler")
@pytest.mark.filterwarnings("default")  # of the compiler's own modules
def test_a_compiled_network_gives_the_same_accuracies_and_a_plain_model(spec, tmp_path):
    train_run(spec, tmp_path / "plain")
    train_run(spec, tmp_path / "compiled", devices=Devices(compile=True))
    for expected, found in zip(accuracies(tmp_path / "plain"), accuracies(tmp_path / "compiled"), strict=True):
        assert found[3:] == expected[3:] and found[2] == pytest.approx(expected[2], rel=1e-4)
    plain, compiled = (RunFolder(tmp_path / name).load("model.pt") for name in ("plain", "compiled"))
    assert list(plain) == list(compiled)


def test_bfloat16_is_part_of_the_spec_and_close(spec, tmp_path):
    full, mixed = (train_run(replace(spec, precision=p), tmp_path / p).result for p in ("32", "bf16"))
    assert full.spec.precision == "32" and mixed.spec.precision == "bf16"
    a, b = (accuracies(tmp_path / name)[1][2]["cross_entropy"] for name in ("32", "bf16"))
    assert a != b and b == pytest.approx(a, rel=0.05)
    dataset, folder = load(spec.dataset), RunFolder(tmp_path / "bf16")
    model = load_model(folder, dataset)
    in_half = features(model, dataset, np.arange(len(dataset)))
    model.low_precision = False
    whole = features(model, dataset, np.arange(len(dataset)))
    assert (in_half != whole).any() and in_half == pytest.approx(whole, rel=0.02, abs=0.02)
    predictor = Predictor(folder.path)
    np.testing.assert_array_equal(predictor.features(dataset.x[:40]), in_half[:40])
    state = RunFolder(tmp_path / "bf16").load("model.pt")
    assert {v.dtype for v in state.values() if v.is_floating_point()} == {torch.float32}


def test_an_unknown_precision_and_a_wrong_number_are_refused(spec, tmp_path):
    with pytest.raises(ValueError, match="precision is 'fp8', expected 32 or bf16"):
        train_run(replace(spec, precision="fp8"), tmp_path)
    with pytest.raises(ValueError, match="number of devices is 0, expected 1 or more"):
        Devices(number=0)
    assert not np.any([p.name == "spec.json" for p in tmp_path.iterdir()])


def test_more_devices_than_there_are_is_one_sentence(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(ValueError, match="--devices 4: this machine has 1 GPU; use --devices 1, or --accelerator cpu"):
        Devices(number=4)
    assert Devices("cpu", 4).number == 4


def test_several_devices_need_an_extra_that_one_does_not(spec, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "lightning_fabric", None)  # as where it is not installed
    for several in ({"number": 2}, {"nodes": 2}):
        with pytest.raises(ValueError, match=r"need Lightning Fabric: pip install 'crosstail\[devices\]'"):
            Devices(**several)
    train_run(spec, tmp_path / "run", devices=Devices("cpu"))
