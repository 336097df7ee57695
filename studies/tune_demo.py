"""Search the demo's hyperparameters: 20 random trials per method, selected on validation.

Trial 0 has the defaults. Writes src/crosstail/workflows/demo_hparams.json, and the runs to --out; finished runs are not
repeated. Takes about five minutes on two cores:

    python -m studies.tune_demo --out runs/tune
"""

import argparse
import json
from dataclasses import replace
from pathlib import Path

from crosstail import algorithms
from crosstail.training.fit import train_run
from crosstail.workflows import demo

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--out", type=Path, default=Path("runs/tune"))
parser.add_argument("--trials", type=int, default=20)
arguments = parser.parse_args()

chosen = {}
for method in demo.METHODS:
    trials = []
    for trial in range(arguments.trials):
        spec = demo.spec(method, seed=0)
        hparams = algorithms.draw(algorithms.find(spec.algorithm).Hparams, trial)
        spec = replace(spec, hparams=hparams)
        accuracy = train_run(spec, arguments.out / spec.key).result.validation.pair_average or 0.0
        trials.append((accuracy, -trial, hparams))
        print(f"{method} trial {trial}: validation {accuracy:.3f} {hparams}", flush=True)
    chosen[method] = max(trials)[2]
target = Path(demo.__file__).with_name("demo_hparams.json")
target.write_text(json.dumps(chosen, indent=1) + "\n", encoding="utf-8")
print(f"wrote {target.name}: {chosen}")
