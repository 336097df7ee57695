"""Compare centroids from batches with those from full passes, as in the paper: docs/results/statistics.md.

Takes about ten minutes on one core. Finished runs are not repeated:

    python -m studies.compare_statistics --out runs/statistics
"""

import argparse
from pathlib import Path

import numpy as np

from crosstail.training import RunSpec
from crosstail.training.fit import train_run

WAYS = {
    "from batches (default)": {},
    "full pass every 120 steps, momentum 0.2": {"refresh": 120, "momentum": 0.2},
    "full pass every 20 steps, momentum 0.2": {"refresh": 20, "momentum": 0.2},
}
SETTINGS = {
    "frozen EfficientNet-Lite0, MLP of 256": {"backbone": "efficientnet_lite0", "tune": "none", "steps": 300},
    "small CNN of width 16 from pixels": {"backbone": "small_cnn", "width": 16, "steps": 1500},
}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("runs/statistics"))
arguments = parser.parse_args()

lines = [
    "# Centroids from batches or from full passes",
    "",
    "`digits` with its default label profiles, batches of 3 × 24, default hyperparameters, three seeds. Mean ±",
    "standard deviation of the test pair average at the evaluation that is best on validation. Written by",
    "`python -m studies.compare_statistics`.",
    "",
    "| network | algorithm | statistics | pair average, % |",
    "|---|---|---|---|",
]
for setting, fields in SETTINGS.items():
    for algorithm, ways in {"erm": {"–": {}}, "boda": WAYS, "boda@rescaled": WAYS}.items():
        for way, hparams in ways.items():
            results = []
            for seed in range(3):
                spec = RunSpec(dataset="digits", algorithm=algorithm, hparams=hparams, seed=seed, **fields)
                results.append(train_run(spec, arguments.out / spec.key).result)
            accuracy = 100 * np.array([result.test.pair_average for result in results])
            network = f"{setting}, {fields['steps']} steps" if algorithm == "erm" else ""
            lines.append(f"| {network} | {algorithm} | {way} | {accuracy.mean():.1f} ± {accuracy.std(ddof=1):.1f} |")
            print(lines[-1], flush=True)
target = Path(__file__).parents[1] / "docs" / "results" / "statistics.md"
notes = target.read_text(encoding="utf-8").partition("**Reading the table.**")  # written by hand
target.write_text("\n".join([*lines, "", "".join(notes[1:])]), encoding="utf-8")
