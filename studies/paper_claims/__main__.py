"""Write docs/results/claims.md from the records; with --resume, first do the runs that the records lack.

    python -m studies.paper_claims
    python -m studies.paper_claims --resume --data ../shared/data

Runs are done most important first, and can be stopped at any time. `--quick --resume` is a small version of everything
in a few minutes, with records and a page of its own: it tests the code but does not compare the methods.
"""

import argparse
import multiprocessing
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import torch
from studies.paper_claims.design import QUICK, SETTINGS, Study
from studies.paper_claims.records import Records
from studies.paper_claims.series import left, prepared, resume

HERE = Path(__file__).parent
PROJECT = HERE.parents[1]


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
    parser.add_argument("--only", nargs="+", metavar="METHOD", help="run these algorithms only, such as erm boda+coral")
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
                data = prepared(studies[name].setting, source, given.runs)
                resume(studies[name], data, given.runs, pool, given.workers, given.only)
    for name, study in studies.items():
        print(f"{name}: {left(study)}")
    from studies.paper_claims import page  # its libraries take seconds to import, in every worker

    print(f"wrote {page.write(studies, PROJECT / 'docs' if folder == HERE / 'records' else folder)}")


if __name__ == "__main__":
    main()
