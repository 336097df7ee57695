"""Whole commands on many pairs: CPU seconds and peak memory, as samples, pairs and features double.

A ratio compares twice the size with the size: about 2 is linear, 4 quadratic; below 2 because of the fixed cost of a
command. Features are read from a mapped file, which does not count as memory.
"""

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np

from bench._memory import Usage, usage_of
from bench._rows import Row

DOMAINS, CHUNK = 10, 8_192
USUAL = {"samples": 20_000, "classes": 500, "features": 64}
COMMANDS = {
    "audit": "audit {data} --out {run}.html",
    "fit erm": "fit {data} --algorithm erm --steps 50 --evaluations 1 --out {run}",
    "predict": "predict {run} {data} --out {run}.csv",
    "report": "report {run} --out {run}-report",
    "fit boda": "fit {data} --algorithm boda --steps 50 --evaluations 1 --hp negatives=1024 --out {run}",
    "fit": "fit {data} --out {run}",
}
"""The model of `predict` and `report` is that of `fit erm`; `fit` is the default."""
GROWTH = {
    "samples": (25_000, 50_000, 100_000, 200_000),
    "classes": (250, 500, 1_000, 2_000),
    "features": (32, 64, 128),
}
FIXED = {"samples": 50_000, "classes": 500, "features": 64}
LARGEST = {"samples": 2_000_000, "classes": 10_000, "features": 128}


def write_embeddings(path: Path, samples: int, classes: int, features: int) -> None:
    """An .npz file in which every pair has about as many samples, a chunk at a time."""
    generator = np.random.default_rng(0)
    pair = generator.permutation(samples) % (DOMAINS * classes)
    y, domain = pair % classes, pair // classes
    of_class, of_domain = (generator.standard_normal((n, features), dtype=np.float32) for n in (classes, DOMAINS))
    np.savez(path, y=y, domain=domain, split=generator.choice(["train", "val", "test"], samples, p=[0.8, 0.1, 0.1]))
    with ZipFile(path, "a") as archive, archive.open("x.npy", "w", force_zip64=True) as stream:
        header = {"descr": "<f4", "fortran_order": False, "shape": (samples, features)}
        np.lib.format.write_array_header_1_0(stream, header)
        for start in range(0, samples, CHUNK):
            part = slice(start, min(start + CHUNK, samples))
            noise = generator.standard_normal((len(y[part]), features), dtype=np.float32)
            stream.write((0.3 * of_class[y[part]] + 0.2 * of_domain[domain[part]] + noise).tobytes())


def command(line: str) -> None:
    """The measured function: a command as on the command line."""
    from crosstail.cli import main

    main(line.split())


def measured(folder: Path, **sizes: int) -> dict[str, Usage]:
    """What every command takes at these sizes."""
    data, run = folder / "data.npz", folder / "run"
    write_embeddings(data, **sizes)
    found = {}
    for name, line in COMMANDS.items():
        if name.startswith("fit"):
            shutil.rmtree(run, ignore_errors=True)
        found[name] = usage_of("bench.scale", "command", line.format(data=data, run=run))
    shutil.rmtree(folder / "run-report", ignore_errors=True)
    return found


def growth(known: list[dict[str, Any]], file: Path) -> None:
    """Measure all commands at the sizes of GROWTH and at the LARGEST; those that are known are not measured again."""
    points = [FIXED | {axis: size} for axis, sizes in GROWTH.items() for size in sizes] + [LARGEST]
    for sizes in {tuple(point.items()): point for point in points}.values():
        at = {name: sizes[name] for name in sizes} | {"pairs": DOMAINS * sizes["classes"]}
        if any(row.items() >= at.items() for row in known):
            continue
        with tempfile.TemporaryDirectory() as folder:
            for name, usage in measured(Path(folder), **sizes).items():
                known.append(at | {"command": name, "seconds": usage.cpu_seconds, "MiB": usage.anonymous})
        file.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def run() -> list[Row]:
    quick = os.environ.get("CROSSTAIL_BENCH") == "quick"
    usual = USUAL | ({"samples": 6_000, "classes": 250} if quick else {})
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        one = measured(Path(folder), **usual)
        for axis, size in usual.items():
            twice = measured(Path(folder), **usual | {axis: 2 * size})
            what = f"{2 * DOMAINS * size:,} pairs" if axis == "classes" else f"{2 * size:,} {axis}"
            for name, usage in twice.items():
                growth = usage.cpu_seconds / one[name].cpu_seconds
                rows.append(Row(f"{name}, {what}", usage.cpu_seconds, "half as many", growth, 2.2))
                rows.append(Row(f"{name}, {what}", usage.anonymous, "(peak, file excluded)", None, 4096, unit="MiB"))
    return rows
