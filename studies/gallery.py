"""Train small models on the synthetic digits and draw the charts of docs/report.md from them.

Takes about five minutes on one core. Finished runs are not repeated:

    python -m studies.gallery --out runs/gallery
"""

import argparse
import os
from pathlib import Path

from PIL import Image

from crosstail import RunSpec, fit, report, sweep

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "images" / "gallery"
NETWORK = {"backbone": "efficientnet_lite0", "tune": "none", "steps": 300}
LABELS = {
    "uniform": ("uniform",),
    "forward": ("forward:57",),
    "opposite": ("forward:57", "backward:57", "uniform"),
}
KEPT = {
    "labels-opposite": "report-labels/charts/labels-digits-forward-57-backward-57-uniform.png",
    "graphs": "report-labels/charts/graphs.png",
    "discrepancy": "report-labels/charts/discrepancy-0.png",
    "ratio": "report-labels/charts/ratio-0.png",
    "transferability": "report-sweep/charts/transferability-digits.png",
    "gain": "report-sweep/charts/gain-digits.png",
    "curves": "report-sweep/charts/curves-digits.png",
}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("runs/gallery"))
out = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)
os.chdir(out)
for name, labels in LABELS.items():
    for algorithm in ("erm", "boda"):
        print(f"{algorithm} on {name} labels", flush=True)
        fit(
            RunSpec(dataset="digits", labels=labels, algorithm=algorithm, **NETWORK),
            Path("labels", f"{name}-{algorithm}"),
        )
print("sweep and reports", flush=True)
swept = ("erm", "coral", "bsoftmax", "boda", "boda:retrain")
sweep(RunSpec(dataset="digits", **NETWORK), Path("sweep"), algorithm=swept, trials=4, seeds=2, launcher="inline")
opposite = [Path("labels", f"opposite-{algorithm}") for algorithm in ("erm", "boda")]
report([Path("labels")], graphs=opposite, out=Path("report-labels"))
report([Path("sweep")], out=Path("report-sweep"))
PICTURES.mkdir(parents=True, exist_ok=True)
for name, file in KEPT.items():
    # 256 colours keep the files small.
    Image.open(file).convert("RGB").quantize(256).save(PICTURES / f"{name}.png", optimize=True)
print(Path("report-sweep/tables/results-digits.md").read_text(encoding="utf-8"))
