"""Good inputs, made once: data, runs and sweeps, small enough that a command on them takes a tenth of a second."""

import shlex
import shutil
from contextlib import chdir
from pathlib import Path

import numpy as np
from PIL import Image
from tests.fuzz._case import HANDLED, Case, run

from crosstail.reports.run.command import options
from crosstail.reports.run.duplicates import duplicates
from crosstail.storage import write_json
from crosstail.sweeps.select import as_file, choices
from crosstail.sweeps.store import Store
from crosstail.testing import save_separable
from crosstail.training import RunSpec
from crosstail.training.fit import train_run

COUNTS = [[30, 8, 2], [0, 9, 25]]
DOMAINS, CLASSES = ("clinic", "lab"), ("cat", "dog", "emu")
SIZES = {"width": 8, "steps": 8, "batch_size": 4, "evaluations": 2}
SHORT = "--width 8 --steps 8 --batch-size 4 --evaluations 2"

RUNS = {
    "run-a": RunSpec(
        dataset="vectors.npz", algorithm="boda", second_stage="retrain", trace=True, average="moving", **SIZES
    ),
    "run-b": RunSpec(dataset="vectors.npz", algorithm="mtl", **SIZES),
    "run-p": RunSpec(dataset="photos", algorithm="erm", backbone="small_cnn", resolution=16, **SIZES),
}
COMMANDS = {name: shlex.join(["fit", spec.dataset, *options(spec), "--out", name]) for name, spec in RUNS.items()}
COMMANDS["sweep-a"] = f"sweep vectors.npz --algorithm erm --trials 2 --seeds 2 {SHORT} --launcher inline --out sweep-a"


def make(folder: Path) -> None:
    """Write the data, and train on them."""
    folder.mkdir(parents=True, exist_ok=True)
    save_separable(folder / "vectors.npz", COUNTS)
    with np.load(folder / "vectors.npz") as file:
        np.savez(folder / "vectors.npz", **file, domains=np.array(DOMAINS), classes=np.array(CLASSES))
    rng = np.random.default_rng(0)
    for domain in DOMAINS:
        for c, name in enumerate(CLASSES[:2]):
            for i in range(5):
                path = folder / "photos" / domain / name / f"{i}.jpg"
                path.parent.mkdir(parents=True, exist_ok=True)
                Image.fromarray(rng.integers(120 * c, 120 * c + 100, (24, 24, 3), np.uint8)).save(path, quality=90)
    with chdir(folder):
        for name, spec in RUNS.items():
            duplicates(train_run(spec, Path(name)))  # which writes audit.json
    shutil.copytree(folder / "run-a", folder / "run-c")  # to compare a spoiled one with
    outcome = run(Case("good input", COMMANDS["sweep-a"], (), lambda _: None, limit=300), folder)
    assert outcome.kind == HANDLED, outcome
    store = Store(folder / "sweep-a")
    write_json(store.path / "selected.json", as_file(choices(store, store.results())))


def copy(good: Path, folder: Path) -> None:
    """A copy that a case may spoil."""
    shutil.copytree(good, folder, symlinks=True)
