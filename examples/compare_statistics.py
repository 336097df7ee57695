"""Centroids from the batches or by full passes, as in the paper: accuracy and time, three seeds each.

Writes docs/results/statistics.md. About ten minutes on two cores; finished runs are not run again:

    python examples/compare_statistics.py --out runs/statistics
"""

import argparse
from pathlib import Path

import numpy as np

from crosstail.training import RunSpec
from crosstail.training.fit import fit

WAYS = {
    "from the batches (default)": {"weight": 1.0},
    "full pass every 120 steps, momentum 0.2": {"weight": 1.0, "refresh": 120, "momentum": 0.2},
    "full pass every 20 steps, momentum 0.2": {"weight": 1.0, "refresh": 20, "momentum": 0.2},
}
SETTINGS = {
    "frozen EfficientNet-Lite0, MLP of 256": {"backbone": "efficientnet_lite0", "freeze": True, "steps": 300},
    "small CNN of width 16 from pixels": {"backbone": "small_cnn", "width": 16, "steps": 300},
}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("runs/statistics"))
arguments = parser.parse_args()

lines = [
    "# Centroids from the batches or by full passes",
    "",
    "`digits` with its default label profiles, batches of 3 × 24, ω = 1, three seeds, mean ± standard deviation;",
    "test pair average of the evaluation that is best on validation. Seconds are for training and 10 evaluations, on",
    "two CPU cores; they depend on what else the machine does. Made by `python examples/compare_statistics.py`.",
    "",
    "| network | algorithm | statistics | pair average, % | seconds |",
    "|---|---|---|---|---|",
]
for setting, words in SETTINGS.items():
    for algorithm, ways in {"erm": {"–": {}}, "boda": WAYS}.items():
        for way, hparams in ways.items():
            results = []
            for seed in range(3):
                spec = RunSpec(dataset="digits", algorithm=algorithm, hparams=hparams, seed=seed, **words)
                results.append(fit(spec, arguments.out / spec.key).result)
            accuracy = 100 * np.array([r.test.pair_average for r in results])
            seconds = np.array([r.seconds for r in results])
            lines.append(
                f"| {setting}, {words['steps']} steps | {algorithm} | {way} | {accuracy.mean():.1f} ± "
                f"{accuracy.std(ddof=1):.1f} | {seconds.mean():.1f} ± {seconds.std(ddof=1):.1f} |"
            )
            print(lines[-1], flush=True)
target = Path(__file__).parents[1] / "docs" / "results" / "statistics.md"
target.write_text("\n".join(lines) + "\n", encoding="utf-8")
