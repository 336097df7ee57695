"""Short runs on well-separated vectors."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from crosstail.training import RunSpec
from crosstail.training.spec import split_method

STEPS = 40


def save_separable(
    path: Path, counts: Any = ((20, 20, 20), (20, 20, 20)), *, num_features: int = 6, seed: int = 0
) -> None:
    """Write well-separated vectors: training counts (D, C), and per pair 5 samples for validation and 8 for test."""
    table = np.asarray(counts)
    rng = np.random.default_rng(seed)
    centres = 4 * rng.normal(size=(table.shape[1], num_features))
    offsets = rng.normal(size=(table.shape[0], num_features))
    parts = [("train", table), ("val", np.full_like(table, 5)), ("test", np.full_like(table, 8))]
    domain, y = (
        np.concatenate([np.repeat(index.ravel(), n.ravel()) for _, n in parts]) for index in np.indices(table.shape)
    )
    x = centres[y] + offsets[domain] + rng.normal(size=(len(y), num_features))
    split = np.concatenate([np.full(n.sum(), name) for name, n in parts])
    np.savez(path, x=x.astype(np.float32), y=y, domain=domain, split=split)


@contextmanager
def easy_run(name: str, counts: Any = ((20, 20, 20), (20, 20, 20))) -> Iterator[tuple[RunSpec, Path]]:
    """A short run of a method on separable vectors, and a new folder for it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "easy.npz"
        save_separable(path, counts)
        algorithm, stage = split_method(name)
        shared: dict[str, Any] = {"dataset": str(path), "backbone": "mlp", "width": 18, "hparams": {"lr": 0.01}}
        shared |= {"steps": STEPS, "batch_size": 8, "evaluations": 4}
        spec = RunSpec(**shared, algorithm=algorithm, second_stage=stage)
        yield spec, Path(folder) / "run"


@contextmanager
def changed(path: str) -> Iterator[dict[str, Any]]:
    """The arrays of an .npz file, written back at the end."""
    with np.load(path) as file:
        arrays = dict(file)
    yield arrays
    np.savez(path, **arrays)
