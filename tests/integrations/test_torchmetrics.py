"""`PairMetric` in a Lightning loop on two processes, against NumPy on all samples."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from crosstail.metrics import Answers, find, names

ROOT = Path(__file__).parents[2]
COUNTS = [[30, 4, 9], [2, 50, 0]]
SIZES = [(7, 4), (3, 12), (1, 9)]  # samples of each batch, in process 0 and in process 1
WATCHED = [(name, "pair_average") for name in names()] + [("accuracy", "worst_pair"), ("log_loss", "worst_domain")]
LOOP = """
import json, sys
import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import DataLoader
from crosstail.integrations.torchmetrics import PairMetric
from tests.integrations.test_torchmetrics import COUNTS, SIZES, WATCHED, samples

class Module(pl.LightningModule):
    def __init__(self):
        super().__init__()
        watched = [PairMetric(2, 3, metric=name, view=view, counts=COUNTS) for name, view in WATCHED]
        self.metrics, self.unused = nn.ModuleList(watched), nn.Linear(1, 1)

    def validation_step(self, batch, index):
        for metric, (name, view) in zip(self.metrics, WATCHED):
            metric.update(*batch)
            self.log(f"{name} {view}", metric)

    def on_validation_epoch_end(self):
        for metric in self.metrics:
            metric.compute()
        self.tables = [metric.pairs.matrix.tolist() for metric in self.metrics]

    def val_dataloader(self):
        own, every = self.global_rank, samples()
        ends = [sum(map(sum, SIZES[:i])) for i in range(len(SIZES))]
        parts = [(e + a * own, e + a + b * own) for e, (a, b) in zip(ends, SIZES)]
        return DataLoader([tuple(v[slice(*part)] for v in every) for part in parts], batch_size=None)

quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False, "enable_model_summary": False}
trainer = pl.Trainer(accelerator="cpu", devices=2, strategy="ddp", use_distributed_sampler=False, **quiet)
module = Module()
for again in range(2):  # it is reset in between
    found = trainer.validate(module, verbose=False)
if trainer.is_global_zero:
    open(sys.argv[1], "w").write(json.dumps([found[0], module.tables]))
"""


def samples():
    """Scores (N, C), classes (N,) and domains (N,)."""
    generator = torch.Generator().manual_seed(0)
    number = sum(map(sum, SIZES))
    y, domain = (torch.randint(n, (number,), generator=generator) for n in (3, 2))
    y[(y == 2) & (domain == 1)] = 0  # a pair without samples
    return torch.randn(number, 3, generator=generator) + torch.eye(3)[y], y, domain


def environment():
    """Without what hides torchmetrics from other tests, see tests/conftest.py."""
    return os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)]), "OMP_NUM_THREADS": "1"}


@pytest.mark.slow
def test_in_a_lightning_loop_on_two_processes(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    command = [sys.executable, str(tmp_path / "loop.py"), str(tmp_path / "found.json")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    logged, tables = json.loads((tmp_path / "found.json").read_text())
    scores, y, domain = (values.numpy() for values in samples())
    log_p = scores.astype(float) - np.log(np.exp(scores.astype(float)).sum(1, keepdims=True))
    about = {"domains": ["a", "b"], "classes": ["x", "y", "z"], "counts": np.array(COUNTS), "y": y, "domain": domain}
    answers = Answers(**about, predicted=scores.argmax(1), log_p=log_p, true=log_p[np.arange(len(y)), y])
    hit = np.full((2, 3), np.nan)
    for d, c in {*zip(domain.tolist(), y.tolist(), strict=True)}:
        hit[d, c] = (scores.argmax(1) == y)[(domain == d) & (y == c)].mean()
    assert np.isnan(hit).sum() == 1 and logged["accuracy worst_pair"] == pytest.approx(np.nanmin(hit))
    assert logged["accuracy pair_average"] == pytest.approx(np.nanmean(hit))
    np.testing.assert_allclose(np.array(tables[0], float), hit)
    for (name, view), table in zip(WATCHED, tables, strict=True):
        expected = find(name).values(answers)
        assert logged[f"{name} {view}"] == pytest.approx(getattr(expected, view), abs=1e-6), name
        np.testing.assert_allclose(np.array(table, float), expected.matrix, atol=1e-6)


WRONG = """
import torch
from crosstail.integrations.torchmetrics import PairMetric
y = torch.tensor([0, 1])
for make in (
    lambda: PairMetric(2, 3, view="best"),
    lambda: PairMetric(2, 3, metric="as_they_come"),
    lambda: PairMetric(2, 3, counts=[[1, 2]]),
    lambda: PairMetric(2, 3).update(y, torch.tensor([0, 3]), y),
    lambda: PairMetric(2, 3, metric="log_loss").update(y, y, y),
    lambda: PairMetric(2, 3).update(torch.randn(2, 4), y, y),
):
    try:
        make()
    except ValueError as error:
        print(error)
one = PairMetric(2, 3)
print(one(y, y, y).item(), one.compute().item(), one.pairs.interval() is not None, one.higher_is_better)
"""


@pytest.mark.slow
def test_mistakes_are_named_and_classes_are_enough_for_accuracy():
    done = subprocess.run([sys.executable, "-c", WRONG], capture_output=True, text=True, env=environment())
    assert done.stdout.splitlines() == [
        "view is 'best', expected one of average, worst_domain, pair_average, worst_pair",
        "as_they_come weighs pairs by their training samples: give it counts (D, C)",
        "counts is (1, 2), expected (2, 3)",
        "y of sample 1 is 3, expected 0 to 2",
        "scores is torch.int64 of shape (2,), expected scores (B, 3)",
        "scores is torch.float32 of shape (2, 4), expected scores (B, 3) or classes (B,)",
        "1.0 1.0 True True",
    ], done.stderr


def test_without_torchmetrics_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "torchmetrics", None)
    with pytest.raises(ImportError, match="needs torchmetrics: pip install"):
        import crosstail.integrations.torchmetrics  # noqa: F401
