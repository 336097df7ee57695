"""When should BoDA's term set in? Validation accuracy on several sets: docs/results/boda-warmup.md.

Takes about half an hour on one core. Finished runs are not repeated:

    python -m studies.boda_warmup --data ../shared/data --out runs/boda-warmup

DATA contains digits-mlt.npz (MNIST-M and SVHN), digits-mlt-16.npz (the same at half the size, which
`python -m studies.paper_claims --resume` writes to its runs), crisis.npz (tweets as vectors) and office-caltech10
(photos); sets that are not there are left out.
"""

from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from studies.result_options import result_options

from crosstail.training import RunSpec
from crosstail.training.fit import train_run

SEEDS = 3
WARMUPS = (0.0, 0.05, 0.1, 0.2, 0.4)
OPPOSITE = ("forward:100", "backward:100")


@dataclass(frozen=True)
class Case:
    """A data set, a network, and a length."""

    title: str
    dataset: str  # a benchmark, or a file or folder in DATA
    fields: dict[str, Any]


FROZEN = {"backbone": "efficientnet_lite0", "tune": "none"}
CASES = (
    Case("synthetic digits, frozen features", "digits", {**FROZEN, "steps": 300}),
    Case("synthetic digits, small CNN", "digits", {"backbone": "small_cnn", "width": 16, "steps": 600}),
    Case("Office-Caltech10, frozen features", "office-caltech10", {**FROZEN, "steps": 300}),
    Case("tweets of nine disasters, MLP", "crisis.npz", {"backbone": "mlp", "steps": 1000}),
    Case("Digits-MLT, frozen features", "digits-mlt.npz", {**FROZEN, "labels": OPPOSITE, "steps": 1000}),
    Case(
        "Digits-MLT at 16 × 16, small CNN",
        "digits-mlt-16.npz",
        {"backbone": "small_cnn", "width": 16, "labels": OPPOSITE, "steps": 3000},
    ),
)


def validation(job: tuple[RunSpec, Path]) -> float:
    """Best validation accuracy of a run, in percent."""
    torch.set_num_threads(1)
    spec, out = job
    return 100 * max(record.validation.pair_average or 0 for record in train_run(spec, out).folder.records())


def rows(case: Case, source: str, out: Path, pool: ProcessPoolExecutor) -> str:
    """A row of the table: ERM, then BoDA with each warm-up."""
    shared = RunSpec(dataset=source, augment=False, evaluations=10, **case.fields)
    methods = [replace(shared, algorithm="erm")]
    methods += [replace(shared, algorithm="boda", hparams={"warmup": warmup}) for warmup in WARMUPS]
    jobs = [(spec, out / spec.key) for method in methods for spec in (replace(method, seed=s) for s in range(SEEDS))]
    found = np.array(list(pool.map(validation, jobs))).reshape(len(methods), SEEDS)
    cells = [f"{m:.1f} ± {s:.1f}" for m, s in zip(found.mean(1), found.std(1, ddof=1), strict=True)]
    return f"| {case.title}, {case.fields['steps']:,} steps | {' | '.join(cells)} |"


def main() -> None:
    """Complete the runs and write the page."""
    parser = result_options(__doc__, "runs/boda-warmup")
    parser.add_argument("--workers", type=int, default=1)
    given = parser.parse_args()
    lines = [
        "# When BoDA's term takes effect",
        "",
        f"Best **validation** pair average in percent, mean ± standard deviation over {SEEDS} seeds, one stage; the",
        "test set was not used. Warm-ups are shares of the steps before the term is added; everything else has its",
        "default. Written by `python -m studies.boda_warmup`.",
        "",
        "| data, network | ERM | " + " | ".join(f"{warmup:g}" for warmup in WARMUPS) + " |",
        "|---" * (2 + len(WARMUPS)) + "|",
    ]
    with ProcessPoolExecutor(given.workers) as pool:
        for case in CASES:
            source = case.dataset if case.dataset == "digits" else str(given.data / case.dataset)
            if case.dataset == "digits" or Path(source).exists():
                lines.append(rows(case, source, given.out, pool))
                print(lines[-1], flush=True)
    page = Path(__file__).parents[1] / "docs/results/boda-warmup.md"
    notes = page.read_text(encoding="utf-8").partition("**Reading the table.**") if page.exists() else ()
    page.write_text("\n".join([*lines, "", "".join(notes[1:])]), encoding="utf-8")  # the notes are written by hand


if __name__ == "__main__":
    main()
