"""Train every algorithm on the synthetic digits with its defaults, three seeds each: docs/results/digits-all.md.

Takes about five minutes on two cores. Finished runs are not repeated:

    python examples/digits_all.py --out runs/digits-all
"""

import argparse
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from crosstail import algorithms
from crosstail.training import RunSpec
from crosstail.training.fit import fit
from crosstail.training.result import SplitAccuracy

SEEDS = 3
SHARED = RunSpec(dataset="digits", backbone="efficientnet_lite0", freeze=True, steps=300)
COMBINED: list[tuple[str, dict[str, Any]]] = [
    ("boda:retrain", {"algorithm": "boda", "second_stage": "retrain"}),
    ("bsoftmax:retrain", {"algorithm": "bsoftmax", "second_stage": "retrain"}),
    ("boda+bsoftmax", {"algorithm": "boda+bsoftmax"}),
    ("boda+coral", {"algorithm": "boda+coral"}),
    ("erm --average moving", {"algorithm": "erm", "average": "moving"}),
]


def run(job: tuple[RunSpec, Path]) -> SplitAccuracy:
    """Test accuracies of one run, trained on one thread."""
    torch.set_num_threads(1)
    return fit(*job).result.test


def cell(accuracies: Iterable[float | None]) -> str:
    """Mean ± standard deviation over the seeds, in percent."""
    values = 100 * np.array(list(accuracies), dtype=float)
    return f"{values.mean():.1f} ± {values.std(ddof=1):.1f}"


def main() -> None:
    """Complete the runs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/digits-all"))
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    entries = algorithms.catalogue()
    methods = [(e.name, e.family, {"algorithm": e.name}) for e in entries] + [(n, "combined", w) for n, w in COMBINED]
    specs = {name: [replace(SHARED, seed=seed, **method) for seed in range(SEEDS)] for name, _, method in methods}
    jobs = [(spec, arguments.out / spec.key) for group in specs.values() for spec in group]
    with ProcessPoolExecutor(arguments.workers) as pool:
        tested = {}
        for number, ((spec, _), test) in enumerate(zip(jobs, pool.map(run, jobs), strict=True), 1):
            tested[spec.key] = test
            print(f"{number} / {len(jobs)}: {spec.method} {100 * (test.pair_average or 0):.1f}", flush=True)
    lines = [
        "# Every algorithm on the synthetic digits",
        "",
        "`crosstail fit digits --backbone efficientnet_lite0 --freeze --algorithm NAME --steps 300` with the default",
        "hyperparameters of each algorithm. Nothing was searched, so this compares defaults, not the best settings.",
        f"Mean ± standard deviation over {SEEDS} seeds of the test accuracy in percent, at the evaluation that is best",
        "on validation. Batches of 3 × 24. Written by `python examples/digits_all.py`.",
        "",
        "| family | method | pair average | worst domain | few-shot | zero-shot |",
        "|---|---|---|---|---|---|",
    ]
    for name, family, _ in methods:
        found = [tested[spec.key] for spec in specs[name]]
        cells = [cell(test.pair_average for test in found), cell(test.worst_domain for test in found)]
        cells += [cell(test.shots[shots] for test in found) for shots in ("few", "zero")]
        lines.append(f"| {family} | `{name}` | {' | '.join(cells)} |")
    target = Path(__file__).parents[1] / "docs/results/digits-all.md"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
