"""Write docs/results/claims.md from the records; with --resume, first do the runs that the records lack.

    python -m studies.paper_claims
    python -m studies.paper_claims --resume --data ../shared/data

Runs are done most important first, and can be stopped at any time. `--quick --resume` is a small version of everything
in a few minutes, with records and a page of its own: it tests the code but does not compare the methods.
"""

import argparse
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from pathlib import Path
from typing import Any

import numpy as np
import torch
from studies.paper_claims.design import QUICK, SETTINGS, Run, Setting, Study
from studies.paper_claims.records import Record, Records, distil

from crosstail.sweep.worker import inputs
from crosstail.training.fit import fit
from crosstail.training.folder import RunFolder
from crosstail.training.loop import Diverged

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]
HALVED = "digits-mlt-16.npz"


def halved(data: Path, out: Path) -> Path:
    """The same images at half the width and height (means of 2 × 2 pixels): a quarter of the work for a CNN."""
    if not out.exists():
        arrays: dict[str, Any] = dict(np.load(data))
        n, height, width, channels = arrays["x"].shape
        squares = arrays["x"].reshape(n, height // 2, 2, width // 2, 2, channels)
        arrays["x"] = np.rint(squares.mean(axis=(2, 4), dtype=np.float32)).astype(np.uint8)
        out.parent.mkdir(parents=True, exist_ok=True)
        partial = out.with_suffix(".part.npz")
        np.savez(partial, **arrays)
        partial.replace(out)
    return out


def execute(setting: Setting, run: Run, data: Path, runs: Path) -> Record:
    """Do a run, or resume it, and return its record."""
    spec = setting.spec(run, data)
    folder = runs / spec.key
    try:
        fit(spec, folder, inputs=inputs(spec))
    except Diverged as error:
        return {"failed": str(error)}
    return distil(RunFolder(folder), look=not (setting.photos or run.short))


def resume(study: Study, data: Path, runs: Path, pool: Executor, workers: int = 1) -> None:
    """Do the runs that the records lack; which ones they are depends on the results so far."""
    busy: dict[Future[Record], Run] = {}
    while True:
        free = [run for run in study.missing() if run not in busy.values()]
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


def main(words: Sequence[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.paper_claims", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--resume", action="store_true", help="do the runs that the records lack")
    parser.add_argument("--setting", choices=SETTINGS, action="append", help="default: all of them")
    parser.add_argument("--data", type=Path, help="folder with digits-mlt.npz and office-caltech10/")
    parser.add_argument("--runs", type=Path, default=PROJECT / "runs" / "claims", help="where runs are stored")
    parser.add_argument("--records", type=Path, help="default: the committed ones, or RUNS/quick with --quick")
    parser.add_argument("--workers", type=int, default=1, help="runs at once, each on one core")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args(words)
    settings, usual = (QUICK, given.runs / "quick") if given.quick else (SETTINGS, HERE / "records")
    folder = given.records or usual
    studies = {name: Study(setting, Records(folder / f"{name}.jsonl")) for name, setting in settings.items()}
    if given.resume:
        source = given.data or PROJECT.parent / "shared" / "data"
        if not source.is_dir():
            parser.error(f"--data: {source} is not a folder; it must hold digits-mlt.npz and office-caltech10/")
        # Workers are started afresh: a fork of a process with torch's threads may hang.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(given.workers, context, torch.set_num_threads, (1,)) as pool:
            for name in given.setting or studies:
                data = source / studies[name].setting.shared.dataset
                if data.name == HALVED:
                    data = halved(source / "digits-mlt.npz", given.runs / HALVED)
                resume(studies[name], data, given.runs, pool, given.workers)
    for name, study in studies.items():
        print(f"{name}: {left(study)}")
    from studies.paper_claims import page  # its libraries take seconds to import, in every worker

    own = folder == HERE / "records"
    written = page.write(studies, *(PROJECT / "docs" / name if own else folder for name in ("results", "images")))
    print(f"wrote {written}")


if __name__ == "__main__":
    main()
