"""Run bad inputs through the command line and count how they end."""

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random

import torch
from tests.fuzz import arrays, images, json_files, manifests, models
from tests.fuzz._case import BAD, OUTCOMES, Case, Outcome, run
from tests.fuzz._good import copy, make

FAMILIES = {module.__name__.rpartition(".")[2]: module for module in (json_files, arrays, manifests, images, models)}


def case_of(family: str, number: int, good: Path) -> Case:
    """A case by its number, always the same one."""
    return FAMILIES[family].case(Random(f"{family} {number}"), good)


def outcome_of(case: Case, good: Path, folder: Path) -> Outcome:
    """Run a case in a copy of the good inputs."""
    copy(good, folder)
    try:
        return run(case, folder)
    finally:
        shutil.rmtree(folder)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--cases", type=int, default=10_000, help="how many in all (default: 10,000)")
    parser.add_argument("--start", type=int, default=0, help="number of the first of each family")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--only", choices=sorted(FAMILIES), nargs="+", default=list(FAMILIES), help="these families")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    end, done = time.monotonic() + 60 * arguments.minutes, 0
    counts: dict[str, Counter[str]] = {family: Counter() for family in arguments.only}
    with tempfile.TemporaryDirectory(prefix="crosstail-fuzz-") as folder:
        os.environ["CROSSTAIL_CACHE"] = f"{folder}/cache"
        good = Path(folder) / "good"
        make(good)
        for number in range(arguments.start, arguments.start + arguments.cases // len(arguments.only)):
            if time.monotonic() > end:
                break
            done += len(arguments.only)
            for family in arguments.only:
                case = case_of(family, number, good)
                outcome = outcome_of(case, good, Path(folder) / "case")
                counts[family][outcome.kind] += 1
                if outcome.kind in BAD:
                    shown = f"{family} {number}: {outcome.kind}\n  {case.what}\n  crosstail {case.command}"
                    print(f"{shown}\n  {outcome.detail}", flush=True)
    print(table(counts))
    return int(any(found[kind] for found in counts.values() for kind in BAD))


def table(counts: dict[str, Counter[str]]) -> str:
    """The counts as Markdown."""
    rows = [["family", "cases", *OUTCOMES], ["---"] * (2 + len(OUTCOMES))]
    every = counts | {"all": sum(counts.values(), Counter())}
    rows += [[name, f"{found.total():,}", *(f"{found[kind]:,}" for kind in OUTCOMES)] for name, found in every.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
