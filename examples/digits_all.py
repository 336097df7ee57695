"""Every algorithm on the made digits with its defaults, the same budget, three seeds each: docs/results/digits-all.md.

About five minutes on two cores; finished runs are not run again:

    python examples/digits_all.py --out runs/digits-all
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from crosstail import algorithms
from crosstail.training import RunSpec
from crosstail.training.fit import fit

SEEDS = 3
WORDS = {"dataset": "digits", "backbone": "efficientnet_lite0", "freeze": True, "steps": 300}
MORE = [
    ("boda:retrain", {"algorithm": "boda", "second_stage": "retrain"}),
    ("bsoftmax:retrain", {"algorithm": "bsoftmax", "second_stage": "retrain"}),
    ("boda+bsoftmax", {"algorithm": "boda+bsoftmax"}),
    ("boda+coral", {"algorithm": "boda+coral"}),
    ("erm --average", {"algorithm": "erm", "average": True}),
]


def run(job: tuple[RunSpec, Path]) -> dict[str, Any]:
    """One run, on one thread."""
    torch.set_num_threads(1)
    return msgspec.to_builtins(fit(*job).result)


def cell(results: list[dict[str, Any]], *path: str) -> str:
    """Mean ± standard deviation over the seeds, in percent."""
    values = []
    for result in results:
        value: Any = result["test"]
        for key in path:
            value = value[key]
        values.append(100 * value)
    return f"{np.mean(values):.1f} ± {np.std(values, ddof=1):.1f}"


def main() -> None:
    """Run what is not finished, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/digits-all"))
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    entries = algorithms.catalogue()
    methods = [(e.name, e.family, {"algorithm": e.name}) for e in entries] + [(n, "combined", w) for n, w in MORE]
    specs = {
        name: [replace(RunSpec(seed=seed, **WORDS), **method) for seed in range(SEEDS)] for name, _, method in methods
    }
    jobs = [(spec, arguments.out / spec.key) for group in specs.values() for spec in group]
    with ProcessPoolExecutor(arguments.workers) as pool:
        results = {}
        for number, ((spec, _), result) in enumerate(zip(jobs, pool.map(run, jobs), strict=True), 1):
            results[spec.key] = result
            print(f"{number} / {len(jobs)}: {spec.algorithm} {100 * result['test']['pair_average']:.1f}", flush=True)
    lines = [
        "# Every algorithm on the synthetic digits",
        "",
        "`crosstail fit digits --backbone efficientnet_lite0 --freeze --algorithm NAME --steps 300` with every",
        "algorithm's defaults: no hyperparameter was searched, so this shows what works as it is, not what is best.",
        f"Mean ± standard deviation over {SEEDS} seeds of the test accuracy in percent, of the evaluation that is best",
        "on validation. Batches of 3 × 24. Made by `python examples/digits_all.py`.",
        "",
        "| family | algorithm | pair average | worst domain | few-shot | zero-shot |",
        "|---|---|---|---|---|---|",
    ]
    for name, family, _ in methods:
        found = [results[spec.key] for spec in specs[name]]
        cells = [
            cell(found, *path) for path in (["pair_average"], ["worst_domain"], ["shots", "few"], ["shots", "zero"])
        ]
        lines.append(f"| {family} | `{name}` | {' | '.join(cells)} |")
    target = Path(__file__).parents[1] / "docs/results/digits-all.md"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
