"""Peak memory of a short run on 4 GB of embeddings, the size of DomainNet through a ResNet-50."""

import os
import shutil
import tempfile
from pathlib import Path
from zipfile import ZipFile

import numpy as np

from bench._memory import usage_of
from bench._rows import Row
from crosstail.training import RunSpec
from crosstail.training.fit import train_run

DOMAINS, CLASSES, FEATURES = 6, 345, 2048
ROWS, QUICK_ROWS = 500_000, 100_000
CHUNK = 8_192
GROWTH = {
    "samples": (12_500, 25_000, 50_000, 100_000),
    "classes": (43, 86, 172, 345),
    "features": (512, 1024, 2048, 4096),
}


def write_embeddings(path: Path, rows: int, classes: int = CLASSES, features: int = FEATURES) -> None:
    """Write an .npz file like `crosstail embed` does, a chunk at a time."""
    generator = np.random.default_rng(0)
    pair = generator.permutation(rows) % (DOMAINS * classes)
    small = {
        "y": pair % classes,
        "domain": pair // classes,
        "split": generator.choice(["train", "val", "test"], rows, p=[0.9, 0.05, 0.05]),
    }
    np.savez(path, **small)
    with ZipFile(path, "a") as archive, archive.open("x.npy", "w", force_zip64=True) as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (rows, features)}
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, rows, CHUNK):
            size = (min(CHUNK, rows - start), features)
            stream.write(generator.standard_normal(size, dtype=np.float32).tobytes())


def short_fit(path: str, head: str) -> None:
    """The measured function: loading, both stages with BoDA's statistics, evaluations, and the graph at the end."""
    spec = RunSpec(dataset=path, algorithm="boda", backbone=head, second_stage="retrain", steps=10, evaluations=1)
    train_run(spec, Path(path).with_suffix(f".{head}"))


def run() -> list[Row]:
    quick = os.environ.get("CROSSTAIL_BENCH") == "quick"
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "embeddings.npz")
        for head in ("mlp", "identity"):
            peak = _extrapolated(path, head) if quick else _peak(path, ROWS, head)
            name = f"fit {head} on {ROWS:,} × {FEATURES:,}"
            found.append(Row(name, peak, "(peak, file excluded)", None, 2048, unit="MiB"))
    return found


def _extrapolated(path: Path, head: str) -> float:
    """Extrapolate linearly in the number of rows, from two smaller files."""
    fewer, more = (_peak(path, rows, head) for rows in (QUICK_ROWS // 2, QUICK_ROWS))
    return more + max(0.0, more - fewer) * (ROWS - QUICK_ROWS) / (QUICK_ROWS - QUICK_ROWS // 2)


def growth() -> list[dict[str, float]]:
    """Peaks with a linear head; one size is varied at a time, starting from 25,000 samples at DomainNet's shape."""
    usual, found = {"samples": 25_000, "classes": CLASSES, "features": FEATURES}, []
    with tempfile.TemporaryDirectory() as folder:
        for name, values in GROWTH.items():
            for value in values:
                sizes = usual | {name: value}
                peak = _peak(
                    Path(folder, "embeddings.npz"), sizes["samples"], "identity", sizes["classes"], sizes["features"]
                )
                found.append({**sizes, "pairs": DOMAINS * sizes["classes"], "MiB": peak})
    return found


def _peak(path: Path, rows: int, head: str, classes: int = CLASSES, features: int = FEATURES) -> float:
    write_embeddings(path, rows, classes, features)
    usage = usage_of("bench.memory", "short_fit", str(path), head)
    shutil.rmtree(path.with_suffix(f".{head}"))  # the next file has the same name but other data
    return usage.anonymous
