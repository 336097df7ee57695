"""Calibration, prevalence and prediction sets on 1,000,000 × 345 log probabilities in float16, and `predict` with all.

The peer of `predict` is itself without options, on images through the embedded network.
"""

import os
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from PIL import Image

from bench._memory import usage_of
from bench._rows import Row
from bench._timing import interleave
from crosstail.metrics import Answers
from crosstail.prediction.decision import decide
from crosstail.training.folder import RunFolder
from crosstail.training.held_out import HeldOut
from crosstail.training.run import Run

DOMAINS, CLASSES = 6, 345  # DomainNet's
NAMES: dict[str, Any] = {
    "domains": [f"site {d}" for d in range(DOMAINS)],
    "classes": [str(c) for c in range(CLASSES)],
    "counts": np.full((DOMAINS, CLASSES), 20),
}
ROWS, QUICK_ROWS = 1_000_000, 100_000
CHUNK = 8_192
IMAGES = 600


def kept(rows: int) -> HeldOut:
    """Log probabilities of a model that is right in half of the cases; a third of the samples is for validation."""
    generator = np.random.default_rng(0)
    y, domain = generator.integers(CLASSES, size=rows), generator.integers(DOMAINS, size=rows)
    log_p = np.empty((rows, CLASSES), np.float16)
    for start in range(0, rows, CHUNK):
        own = y[start : start + CHUNK]
        scores = torch.from_numpy(generator.standard_normal((len(own), CLASSES), dtype=np.float32))
        scores[np.arange(len(own)), own] += 3
        log_p[start : start + CHUNK] = (1.5 * scores).log_softmax(1).numpy()
    about: dict[str, Any] = {"y": y, "domain": domain, "predicted": log_p.argmax(1), "log_p": log_p}
    every, test = Answers(**NAMES, **about, row=np.arange(rows)), np.arange(rows) % 3 > 0
    return HeldOut(every.keep(~test), every.keep(test))


class WithoutResult(RunFolder):
    """A run of which there are only the probabilities."""

    def check_samples(self, *_: Any, **__: Any) -> None:
        """Nothing to compare them with."""


def everything(folder: str, rows: str) -> None:
    """The measured function: what `fit` adds to a run, and what `predict --prior estimate --coverage 0.9` decides."""
    result: Any = SimpleNamespace(answered=NAMES, **NAMES)
    held_out = HeldOut.load(WithoutResult(Path(folder)), result)
    assert held_out is not None
    calibration = held_out.calibration()
    run = Run(Path(folder), result=result, held_out=held_out)
    predictor: Any = SimpleNamespace(run=run, calibration=calibration, classes=NAMES["classes"])
    assert held_out.test.log_p is not None
    log_p, site = held_out.test.log_p[: int(rows)], held_out.test.domain[: int(rows)]
    decision = decide(predictor, log_p, site, prior="estimate", coverage=0.9)
    sizes = [int(members.sum()) for _, _, members in decision.chunks(log_p, site) if members is not None]
    assert sum(sizes) >= len(log_p)


def predictions(folder: Path) -> dict[str, float]:
    """Seconds of `predict` on images, without and with everything."""
    from crosstail.cli import main

    generator = np.random.default_rng(0)
    os.chdir(folder)
    for i in range(IMAGES):
        Path("photos").mkdir(exist_ok=True)
        Image.fromarray(generator.integers(256, size=(256, 256, 3), dtype=np.uint8)).save(f"photos/{i}.jpg")
    run, new = str(folder / "run"), str(folder / "photos")
    torch.set_num_threads(1)
    main(["fit", "digits", "--backbone", "efficientnet_lite0", "--tune none", "--out", run])
    options = ["--site", "signs", "--prior", "estimate", "--coverage", "0.9"]
    words = {"plain": [], "all": options}
    return interleave(
        {
            name: lambda w=w: main(["predict", run, new, *w, "--out", str(folder / "p.csv")])
            for name, w in words.items()
        },
        repeats=3,
    )


def run() -> list[Row]:
    rows = QUICK_ROWS if os.environ.get("CROSSTAIL_BENCH") == "quick" else ROWS
    with tempfile.TemporaryDirectory() as folder:
        kept(rows).save(RunFolder(Path(folder)))
        used = usage_of("bench.deploy", "everything", folder, str(rows))
    with tempfile.TemporaryDirectory() as folder:
        seconds = predictions(Path(folder))
    name = f"calibration, prior, sets, {rows:,} × {CLASSES}"
    return [
        Row(name, used.seconds, "", None, 60),
        Row(name, used.resident, "(peak)", None, 4096, unit="MiB"),
        Row(
            f"predict {IMAGES} images, all options", seconds["all"], "predict", seconds["all"] / seconds["plain"], 1.05
        ),
    ]
