"""Is the default from pixels better than the others where pairs are missing? docs/results/missing-pairs.md.

Takes an hour on one core; finished runs are not repeated:

    python examples/missing_pairs.py --data ../shared/data --out runs/missing

DATA contains digits-mlt-16.npz, Digits-MLT at half the size, which `python -m studies.paper_claims --resume` writes to
its runs.
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from crosstail.metrics import mean_interval
from crosstail.training import RunSpec
from crosstail.training.fit import fit
from crosstail.training.folder import RunFolder
from crosstail.training.result import SplitAccuracy

PAGE = Path(__file__).parents[1] / "docs/results/missing-pairs.md"
DEFAULT, BASE = "bsoftmax+coral", "erm"
METHODS = (BASE, DEFAULT, "bsoftmax")
SEEDS = range(5)
RATE = 0.00316228  # the best of three on validation for each of them, with opposite tails (claims.md)
MISSING = ("forward:100!8,9", "backward:100!0,1")  # rarest where they are missing, most frequent in the other domain
SHARED = RunSpec(
    dataset="digits-mlt-16.npz",
    labels=MISSING,
    backbone="small_cnn",
    width=16,
    freeze=False,
    augment=False,
    batch_size=24,
    steps=9000,
    evaluations=6,
    second_stage="pooled",
    hparams={"lr": RATE, "weight_decay": 0.0},
)
COLUMNS = ("pairs", "zero", "worst")


def measured(test: SplitAccuracy, counts: list[list[int]]) -> dict[str, float]:
    """The columns of the table, in percent."""
    pairs = test.pairs()
    shots = pairs.shots(np.array(counts))
    found = (pairs.pair_average, shots["zero"], pairs.worst_pair)
    return {name: 100 * (value or 0.0) for name, value in zip(COLUMNS, found, strict=True)}


def results(data: Path, out: Path) -> Iterator[dict[str, object]]:
    """A row for both stages of each run, seed after seed, so that a first answer comes early."""
    for seed in SEEDS:
        for method in METHODS:
            own = {"dataset": str(data / SHARED.dataset), "algorithm": method, "seed": seed, "data_seed": seed}
            spec = replace(SHARED, **own)
            folder = RunFolder(out / spec.key)
            result = fit(spec, folder.path).result
            first = next(e for e in folder.records() if (e.stage, e.step) == (1, result.selected_steps[0]))
            for stage, test in (("", first.test), (":pooled", result.test)):
                row = {"method": method + stage, "seed": seed, **measured(test, result.counts)}
                print(row, flush=True)
                yield row


def interval(values: "pd.Series[float]") -> str:
    """Mean and Student's 95 % interval over the seeds."""
    low, high = mean_interval(values)
    return f"{values.mean():+.1f} ({low:+.1f} to {high:+.1f})".replace("-", "−")


def page(table: pd.DataFrame) -> str:
    """The page of all runs."""
    by = {column: table.pivot(index="seed", columns="method", values=column) for column in COLUMNS}
    rows = []
    for method in (name for base in METHODS for name in (base, f"{base}:pooled")):
        cells = [f"{by[c][method].mean():.1f} ± {by[c][method].std(ddof=1):.1f}" for c in COLUMNS]
        pairs = by["pairs"]
        over = ["–" if method == other else interval(pairs[method] - pairs[other]) for other in (BASE, DEFAULT)]
        rows.append(f"| `{method}` | {' | '.join([*cells, *over])} |")
    return TEXT.format(rows="\n".join(rows), seeds=len(SEEDS), rate=RATE, steps=SHARED.steps)


TEXT = """# Missing pairs, from pixels

Digits-MLT at 16 × 16 pixels with opposite tails (1,000 down to 27 samples) and two classes missing from each domain,
which are the most frequent ones in the other domain. A small CNN of width 16 is trained for {steps:,} steps with a
learning rate of {rate:.2g}; {seeds} seeds, which also redraw the samples. Test accuracy in percent, mean ± standard
deviation over the seeds: pair average, pairs without training samples, the worst pair; then the difference in pair
average from ERM and from the default, with 95 % intervals. `:pooled` replaces the classifier by pooled means
([how](../method.md)). Written by `python examples/missing_pairs.py`.

| method | pairs | zero | worst | over `erm` | over `bsoftmax+coral` |
|---|---|---|---|---|---|
{rows}
"""


def main() -> None:
    """Complete the runs and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--out", type=Path, default=Path("runs/missing"))
    given = parser.parse_args()
    torch.set_num_threads(1)
    PAGE.write_text(page(pd.DataFrame(results(given.data, given.out))), encoding="utf-8")


if __name__ == "__main__":
    main()
