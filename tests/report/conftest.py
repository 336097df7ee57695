"""Hand-made runs in folders."""

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from crosstail.metrics import PairAccuracy
from crosstail.training import RunSpec

COUNTS = [[150, 40], [7, 0]]
TOTALS = [[10, 10], [10, 10]]


@pytest.fixture
def make_run(make_run_in: Callable[..., Path], tmp_path: Path) -> Callable[..., Path]:
    """Write a finished run with these hits of ten tested per pair."""
    return partial(make_run_in, tmp_path)


@pytest.fixture(scope="session")
def make_run_in() -> Callable[..., Path]:
    """The same in any folder."""

    def make(
        root: Path,
        place: str,
        hits: Any,
        *,
        totals: Any = TOTALS,
        counts: Any = COUNTS,
        alpha: float = 2.0,
        **spec: Any,
    ) -> Path:
        folder = root / place
        folder.mkdir(parents=True)
        counts = np.asarray(counts)
        planned = RunSpec(**{"dataset": "photos", "steps": 10, **spec})
        accuracy = PairAccuracy(np.asarray(hits), np.asarray(totals))
        result = {
            "spec": planned.to_json(),
            "hparams": {"lr": 0.01, "weight_decay": 0.0},
            "selected_step": 5,
            "seconds": 1.5,
            "domains": [f"d{d}" for d in range(len(counts))],
            "classes": [f"c{c}" for c in range(counts.shape[1])],
            "counts": counts.tolist(),
            "validation": accuracy.to_json(counts),
            "test": accuracy.to_json(counts),
            "transferability": {"alpha": alpha, "beta": 3.0, "gamma": 4.0},
            "input_shape": [4],
            "data": {"checksum": "a" * 64, "samples": 20, "notes": []},
        }
        (folder / "spec.json").write_text(json.dumps(planned.to_json()), encoding="utf-8")
        (folder / "result.json").write_text(json.dumps(result), encoding="utf-8")
        record = {"stage": 1, "seconds": 0.1, "validation": result["validation"], "test": result["test"]}
        lines = [
            json.dumps({**record, "step": step, "losses": {"cross_entropy": 1.0 / step} if step else {}}) + "\n"
            for step in (0, 5, 10)
        ]
        (folder / "records.jsonl").write_text("".join(lines), encoding="utf-8")
        # Of each pair the first `hits` are right; a wrong answer is the next class.
        y, domain, predicted = [], [], []
        for d, c in np.ndindex(counts.shape):
            for i in range(accuracy.totals[d, c]):
                y.append(c)
                domain.append(d)
                predicted.append(c if i < accuracy.hits[d, c] else (c + 1) % counts.shape[1])
        torch.save(
            {"y": torch.tensor(y), "domain": torch.tensor(domain), "predicted": torch.tensor(predicted)},
            folder / "predictions.pt",
        )
        return folder

    return make
