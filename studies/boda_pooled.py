"""Does BoDA gain from pooled centroids? docs/results/boda-pooled.md.

Takes about an hour on one core; finished runs are not repeated:

    python -m studies.boda_pooled --data ../shared/data --out runs/boda-pooled

DATA contains digits-mlt.npz (MNIST-M and SVHN), digits-mlt-16.npz (the same at half the size, which
`python -m studies.paper_claims --resume` writes to its runs) and office-caltech10 (photos).
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from studies.result_options import result_options

from crosstail.metrics import mean_interval
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.result import RunResult

PAGE = Path(__file__).parents[1] / "docs/results/boda-pooled.md"
FROZEN_SEEDS, PIXEL_SEEDS = 5, 2
SEEDS = f"{FROZEN_SEEDS} with frozen features, {PIXEL_SEEDS} from pixels, 1 in the last rows"
OPPOSITE, MISSING = ("forward:100", "backward:100"), ("forward:100!9", "backward:100!0")


@dataclass(frozen=True)
class Case:
    """A data set with its tails, a network and a length."""

    title: str
    dataset: str  # digits, or a file or folder in DATA
    fields: dict[str, Any]
    seeds: int = FROZEN_SEEDS
    algorithms: tuple[str, ...] = ("boda",)


FROZEN = {"backbone": "efficientnet_lite0", "tune": "none"}
PIXELS = {"backbone": "small_cnn", "width": 16, "steps": 3000}
BOTH = ("boda", "boda+coral")
CASES = (
    Case("synthetic digits, frozen", "digits", {**FROZEN, "steps": 300}),
    Case("Digits-MLT, frozen", "digits-mlt.npz", {**FROZEN, "labels": OPPOSITE, "steps": 1000}),
    Case("the same, a class missing per domain", "digits-mlt.npz", {**FROZEN, "labels": MISSING, "steps": 1000}),
    Case(
        "Office-Caltech10 at 64 pixels, frozen",
        "office-caltech10",
        {**FROZEN, "resolution": 64, "labels": 2 * ("forward:50", "backward:50"), "steps": 300},
    ),
    Case("Digits-MLT at 16 × 16, from pixels", "digits-mlt-16.npz", {**PIXELS, "labels": OPPOSITE}, PIXEL_SEEDS, BOTH),
    Case(
        "the same, a class missing per domain",
        "digits-mlt-16.npz",
        {**PIXELS, "labels": MISSING},
        1,
        ("boda+coral",),
    ),
)
COLUMNS = ("pair average", "few-shot", "zero-shot")


def measured(result: RunResult) -> list[float]:
    """The columns of the table, in percent; NaN where there is no such pair."""
    test, shots = result.test, result.test.shots
    found = (test.pair_average, shots["few"], shots["zero"])
    return [np.nan if value is None else 100 * value for value in found]


def rows(case: Case, algorithm: str, source: str, out: Path) -> list[str]:
    """Three rows of the table: without pooling, with it, and the difference over the seeds."""
    shared = RunSpec(dataset=source, algorithm=algorithm, augment=False, **case.fields)
    found = []
    for hparams in ({}, {"pooled": True}):
        specs = [replace(shared, hparams=hparams, seed=seed) for seed in range(case.seeds)]
        found.append(np.array([measured(train_run(spec, out / spec.key).result) for spec in specs]))
        print(case.title, algorithm, hparams, found[-1].round(1).tolist(), flush=True)
    labels = (f"| {case.title} | `{algorithm}` |", "| | pooled |", "| | **difference** |")
    found.append(found[1] - found[0])
    mean, spread = [v.mean(0) for v in found], [np.full(len(COLUMNS), np.nan)] * 3
    if case.seeds > 1:
        spread = [v.std(0, ddof=1) for v in found]
        spread[2] = np.array([np.ptp(mean_interval(column)) / 2 for column in found[2].T])
    cells = [[cell(*c) for c in zip(m, s, strict=True)] for m, s in zip(mean, spread, strict=True)]
    cells[2] = [c if c.startswith(("–", "−")) else f"+{c}" for c in cells[2]]
    return [f"{label} {' | '.join(row)} |" for label, row in zip(labels, cells, strict=True)]


def cell(mean: float, spread: float) -> str:
    """A number and, of several seeds, its spread; or a dash."""
    if np.isnan(mean):
        return "–"
    return (f"{mean:.1f}" if np.isnan(spread) else f"{mean:.1f} ± {spread:.1f}").replace("-", "−")


def main() -> None:
    """Complete the runs and write the page."""
    given = result_options(__doc__, "runs/boda-pooled").parse_args()
    torch.set_num_threads(1)
    table = [f"| data | method | {' | '.join(COLUMNS)} |", "|---" * (2 + len(COLUMNS)) + "|"]
    for case in CASES:
        source = case.dataset if case.dataset == "digits" else str(given.data / case.dataset)
        for algorithm in case.algorithms:
            table += rows(case, algorithm, source, given.out)
    reading = PAGE.read_text(encoding="utf-8").partition("**Reading the table.**")[2]  # written by hand
    PAGE.write_text(TEXT.format(table="\n".join(table), seeds=SEEDS) + reading, encoding="utf-8")


TEXT = """# BoDA with pooled centroids

`boda` against the same with `--hp pooled=true`, one stage, default hyperparameters, tails in opposite directions
(Digits-MLT: 100 to 1, Office-Caltech10: 50 to 1). Test accuracy in percent at the evaluation that is best on
validation, as mean ± standard deviation over the seeds ({seeds}), which share one split. The
difference is of runs with the same seed, ± half a 95 % interval (Student's t). *Frozen*: an MLP on features of
EfficientNet-Lite0; *from pixels*: a small CNN of width 16. Written by `python -m studies.boda_pooled`.

{table}

**Reading the table.**"""


if __name__ == "__main__":
    main()
