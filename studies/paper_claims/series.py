"""Execute the runs that the records lack, one core each."""

import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, wait
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from studies.paper_claims.design import Run, Setting, Study
from studies.paper_claims.records import Record, distil

from crosstail.sweeps.worker import inputs
from crosstail.training.fit import train_run
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Diverged


def prepared(setting: Setting, source: Path, out: Path) -> Path:
    """The data of a setting; digits may be thinned out, and halved: 2 × 2 pixels become one, a quarter of the work."""
    if setting.every == 1 and not setting.halve:
        return source / setting.shared.dataset
    made = out / setting.shared.dataset
    if not made.exists():
        arrays: dict[str, Any] = dict(np.load(source / "digits-mlt.npz"))
        total = len(arrays["y"])
        arrays = {name: array[:: setting.every] if len(array) == total else array for name, array in arrays.items()}
        if setting.halve:
            arrays["x"] = halved(arrays["x"])
        out.mkdir(parents=True, exist_ok=True)
        partial = made.with_suffix(".part.npz")
        np.savez(partial, **arrays)
        partial.replace(made)
    return made


def halved(x: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Images (N, H, W, 3) at half the size, each pixel the mean of 2 × 2."""
    n, height, width, channels = x.shape
    squares = x.reshape(n, height // 2, 2, width // 2, 2, channels)
    return np.rint(squares.mean(axis=(2, 4), dtype=np.float32)).astype(np.uint8)


def execute(setting: Setting, run: Run, data: Path, runs: Path) -> Record:
    """Do a run, or resume it, and return its record."""
    spec = setting.spec(run, data)
    folder = runs / spec.key
    try:
        train_run(spec, folder, inputs=inputs(spec))
    except Diverged as error:
        return {"failed": str(error)}
    return distil(RunFolder(folder), look=not (setting.photos or run.short))


def resume(
    study: Study, data: Path, runs: Path, pool: Executor, workers: int = 1, only: Sequence[str] | None = None
) -> None:
    """Do the runs that the records lack; which ones they are depends on the results so far."""
    busy: dict[Future[Record], Run] = {}
    while True:
        wanted = [run for run in study.missing() if not only or run.cell.algorithm in only]
        free = [run for run in wanted if run not in busy.values()]
        for run in free[: workers - len(busy)]:
            busy[pool.submit(execute, study.setting, run, data, runs)] = run
        if not busy:
            return
        for future in wait(busy, return_when=FIRST_COMPLETED).done:
            run, record = busy.pop(future), future.result()
            study.records.add(run.key, record)
            how = record.get("failed", f"{record.get('seconds', 0):.0f} s")
            print(f"{time.strftime('%H:%M:%S')} {study.setting.name} {run.key}: {how}; {left(study)}", flush=True)


def left(study: Study) -> str:
    """How many runs the records lack, and how long they would take on one core."""
    number, hours = study.cost()
    return f"{number} runs left" + (f", about {hours:.1f} hours of one core" if hours else "")
