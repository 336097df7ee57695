"""Train small models on the synthetic digits and draw the charts of docs/report.md from them.

Takes about five minutes on one core. Finished runs are not repeated:

    python -m studies.gallery --out runs/gallery
"""

import argparse
import os
import shlex
from pathlib import Path

from PIL import Image

from crosstail.cli import main

PICTURES = Path(__file__).resolve().parents[1] / "docs" / "images" / "gallery"
NETWORK = "--backbone efficientnet_lite0 --freeze --steps 300"
LABELS = {
    "uniform": "--labels uniform",
    "forward": "--labels forward:57",
    "opposite": "--labels forward:57 --labels backward:57 --labels uniform",
}
COMMANDS = [
    *(
        f"fit digits {labels} {NETWORK} --algorithm {algorithm} --out labels/{name}-{algorithm}"
        for name, labels in LABELS.items()
        for algorithm in ("erm", "boda")
    ),
    f"sweep digits {NETWORK} --algorithm erm --algorithm coral --algorithm bsoftmax --algorithm boda "
    "--algorithm boda:retrain --trials 4 --seeds 2 --launcher inline --out sweep",
    "report labels --graphs labels/opposite-erm --graphs labels/opposite-boda --out report-labels",
    "report sweep --out report-sweep",
]
KEPT = {
    "labels-opposite": "report-labels/charts/labels-digits-forward-57-backward-57-uniform.png",
    "graphs": "report-labels/charts/graphs.png",
    "matrix": "report-labels/charts/matrix-1.png",
    "discrepancy": "report-labels/charts/discrepancy-0.png",
    "ratio": "report-labels/charts/ratio-0.png",
    "separation": "report-sweep/charts/separation-digits.png",
    "transferability": "report-sweep/charts/transferability-digits.png",
    "gain": "report-sweep/charts/gain-digits.png",
    "curves": "report-sweep/charts/curves-digits.png",
}

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("runs/gallery"))
out = parser.parse_args().out
out.mkdir(parents=True, exist_ok=True)
os.chdir(out)
for words in COMMANDS:
    print(f"crosstail {words}", flush=True)
    main(shlex.split(words))
PICTURES.mkdir(parents=True, exist_ok=True)
for name, file in KEPT.items():
    # 256 colours keep the files small.
    Image.open(file).convert("RGB").quantize(256).save(PICTURES / f"{name}.png", optimize=True)
print(Path("report-sweep/tables/results-digits.md").read_text(encoding="utf-8"))
