"""The transferability graph of as many features as DomainNet has for training, from a memory-mapped file."""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
import torch

from bench._memory import usage_of
from bench._rows import Row
from bench._timing import interleave
from crosstail.transfer import TransferabilityGraph

DOMAINS, CLASSES, FEATURES = 6, 345, 2048
ROWS, QUICK_ROWS = 470_000, 47_000
CHUNK = 8_192


def write_features(path: Path, rows: int) -> None:
    """Random features of random pairs, written a chunk at a time."""
    generator = np.random.default_rng(0)
    with path.open("wb") as file:
        for start in range(0, rows, CHUNK):
            size = (min(CHUNK, rows - start), FEATURES)
            file.write(generator.standard_normal(size, dtype=np.float32).tobytes())


def build(path: str, rows: str) -> None:
    """The measured function: map the first rows read-only and compute their graph."""
    torch.set_num_threads(2)
    z = np.memmap(path, np.float32, "r", shape=(int(rows), FEATURES))
    pair = np.random.default_rng(1).permutation(int(rows)) % (DOMAINS * CLASSES)
    graph = TransferabilityGraph.from_features(
        z, pair % CLASSES, pair // CLASSES, num_domains=DOMAINS, num_classes=CLASSES
    )
    assert graph.matrix.shape == (DOMAINS * CLASSES, DOMAINS * CLASSES)


def available_memory() -> int:
    """Available memory in bytes, including the page cache."""
    lines = Path("/proc/meminfo").read_text().splitlines()
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))


def seconds_of_the_product(rows: int) -> float:
    """Seconds of the unavoidable matrix product, every row with every centroid, extrapolated from a slice."""
    z, centroids = torch.randn(CHUNK, FEATURES), torch.randn(DOMAINS * CLASSES, FEATURES)
    return interleave({"product": lambda: z @ centroids.T}, repeats=5)["product"] * rows / CHUNK


def run() -> list[Row]:
    rows = QUICK_ROWS if os.environ.get("CROSSTAIL_BENCH") == "quick" else ROWS
    with tempfile.TemporaryDirectory() as folder:
        free = shutil.disk_usage(folder).free
        # The file must fit into the page cache, or we would time the disk.
        rows = min(rows, int(0.6 * min(free, available_memory())) // (4 * FEATURES))
        path = Path(folder, "features.bin")
        write_features(path, rows)
        before = seconds_of_the_product(rows)
        usage = usage_of("bench.graph", "build", str(path), str(rows))
        floor = (before + seconds_of_the_product(rows)) / 2
        fewer = max(rows // 10, 3 * CHUNK)
        smaller = usage_of("bench.graph", "build", str(path), str(fewer))
    name = f"graph of {rows:,}"
    growth = usage.anonymous / smaller.anonymous
    return [
        Row(name, usage.seconds, "one matrix product", usage.seconds / floor, 2.0),
        Row(name, usage.anonymous, "(peak, features excluded)", None, 1536, unit="MiB"),
        Row(name, usage.anonymous, f"graph of {fewer:,}", growth, 1.2, unit="MiB"),
    ]
