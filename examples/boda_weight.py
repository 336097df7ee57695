"""Compare weights ω of BoDA's term on the synthetic digits, by validation accuracy: docs/results/boda-weight.md.

Takes about fifteen minutes on two cores. Finished runs are not repeated:

    python examples/boda_weight.py --out runs/boda-weight
"""

import argparse
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from crosstail.training import RunSpec
from crosstail.training.fit import fit

SEEDS = 3
SETTINGS = {
    "frozen EfficientNet-Lite0, MLP of 256": {"backbone": "efficientnet_lite0", "freeze": True, "steps": 300},
    "small CNN of width 16 from pixels": {"backbone": "small_cnn", "width": 16, "steps": 600},
}
ALGORITHMS = {"ERM": ("erm", {})} | {f"BoDA, ω = {w}": ("boda", {"weight": w}) for w in (0.03, 0.1, 0.3, 1.0, 3.0)}


def run(job: tuple[RunSpec, Path]) -> list[float]:
    """Best validation accuracy of each of the two stages of a run, in percent."""
    torch.set_num_threads(1)
    spec, out = job
    records = fit(spec, out).folder.records()
    return [100 * max(r.validation.pair_average or 0 for r in records if r.stage == stage) for stage in (1, 2)]


def main() -> None:
    """Complete the runs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("runs/boda-weight"))
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    lines = [
        "# The weight of BoDA's term on the synthetic digits",
        "",
        f"`digits`, batches of 3 × 24, {SEEDS} seeds. Mean ± standard deviation of the best **validation** pair",
        "average in percent, before and after the second stage; the test set was not used. Written by",
        "`python examples/boda_weight.py`.",
        "",
        "| network | algorithm | stage one | second stage |",
        "|---|---|---|---|",
    ]
    with ProcessPoolExecutor(arguments.workers) as pool:
        for setting, fields in SETTINGS.items():
            for name, (algorithm, hparams) in ALGORITHMS.items():
                shared = RunSpec(
                    dataset="digits", algorithm=algorithm, second_stage="retrain", hparams=hparams, **fields
                )
                specs = [replace(shared, seed=seed) for seed in range(SEEDS)]
                best = np.array(list(pool.map(run, [(spec, arguments.out / spec.key) for spec in specs])))
                cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(best.mean(0), best.std(0, ddof=1), strict=True)]
                lines.append(f"| {setting}, {fields['steps']} steps | {name} | {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    target = Path(__file__).parents[1] / "docs/results/boda-weight.md"
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
