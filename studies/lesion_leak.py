"""How much is accuracy inflated if a lesion has pictures in both training and test? docs/results/leak.md.

HAM10000 has 10,015 pictures of 7,470 skin lesions. They are split twice: by picture, and by lesion. Takes ten minutes
on one core once the pictures are embedded; finished runs are not repeated:

    python -m studies.lesion_leak --data ../shared/data/ham10000/manifest.csv --out runs/leak
"""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from studies.result_options import result_options

from crosstail.data import ImageFiles
from crosstail.metrics import PairAccuracy, mean_interval
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.resolve import resolve
from crosstail.training.run_data import load_inputs

METHODS = ("erm", "bsoftmax", "boda")
SEEDS = 5
PAGE = Path(__file__).parents[1] / "docs/results/leak.md"


@dataclass(frozen=True)
class Measured:
    """One run on the split by picture or by lesion; accuracies in percent."""

    pairs: float  # mean over pairs
    pictures: float  # share of all test pictures
    known: float  # mean over pairs, pictures whose lesion is in the training set
    new: float  # the same pairs, pictures of other lesions
    shared: float  # test pictures whose lesion is in the training set


def measure(spec: RunSpec, out: Path) -> Measured:
    """Train a run, and look its test pictures up in the manifest."""
    inputs = load_inputs(resolve(spec))
    run = train_run(spec, out / spec.key, inputs=inputs)
    dataset, found = inputs.samples, run.predictions
    assert found is not None and isinstance(dataset.x, ImageFiles)
    lesion = lesions_of(spec, dataset.x).to_numpy()
    known = np.isin(lesion[dataset.rows("test")], lesion[dataset.rows("train")])

    def accuracy(mask: NDArray[np.bool_]) -> PairAccuracy:
        sizes = {"num_domains": dataset.num_domains, "num_classes": dataset.num_classes}
        return PairAccuracy.from_predictions(found.predicted[mask], found.y[mask], found.domain[mask], **sizes)

    everything, seen, unseen = accuracy(known | ~known), accuracy(known), accuracy(~known)
    both = (seen.totals > 0) & (unseen.totals > 0)
    mean = [100 * part.matrix[both].mean() if both.any() else np.nan for part in (seen, unseen)]
    right = 100 * everything.hits.sum() / everything.totals.sum()
    return Measured(100 * (everything.pair_average or 0), right, *mean, 100 * known.mean())


def duplicates(spec: RunSpec) -> tuple[int, int]:
    """Sets of pictures that the split keeps together without being told, and how many of them show one lesion."""
    dataset = load_inputs(resolve(spec)).samples
    assert dataset.group is not None and isinstance(dataset.x, ImageFiles)
    lesions = lesions_of(spec, dataset.x).groupby(dataset.group)
    several = lesions.size() > 1
    return int(several.sum()), int((lesions.nunique()[several] == 1).sum())


def lesions_of(spec: RunSpec, pictures: ImageFiles) -> "pd.Series[str]":
    """The lesion that each picture shows."""
    return pd.read_csv(spec.dataset, index_col="path")["lesion_id"].loc[pictures.paths()]


def interval(values: NDArray[np.float64]) -> str:
    """Mean and Student's 95 % interval over the seeds."""
    low, high = mean_interval(values)
    return f"{values.mean():+.1f} ({low:+.1f} to {high:+.1f})".replace("-", "−")


def main() -> None:
    """Complete the runs and write the page."""
    given = result_options(__doc__, "runs/leak", "../shared/data/ham10000/manifest.csv").parse_args()
    torch.set_num_threads(1)
    named = {"domain": "source", "label": "diagnosis"}
    shared = RunSpec(dataset=str(given.data), backbone="efficientnet_lite0", tune="none", steps=1000)
    rows, details = [], []
    for method in METHODS:
        found: dict[str, list[Measured]] = {"picture": [], "lesion": []}
        for seed in range(SEEDS):
            for unit, columns in (("picture", named), ("lesion", named | {"group": "lesion_id"})):
                spec = replace(shared, algorithm=method, columns=columns, seed=seed, data_seed=seed)
                found[unit].append(measure(spec, given.out))
                print(method, seed, unit, found[unit][-1], flush=True)
        table = {unit: pd.DataFrame(map(vars, runs)) for unit, runs in found.items()}
        for name, what in (("pairs", "mean over pairs"), ("pictures", "all pictures")):
            one, other = (table[unit][name].to_numpy() for unit in ("picture", "lesion"))
            cells = [f"{v.mean():.1f} ± {v.std(ddof=1):.1f}" for v in (one, other)]
            rows.append(f"| `{method}` | {what} | {cells[0]} | {cells[1]} | {interval(one - other)} |")
        leaky = table["picture"]
        cells = [f"{leaky[name].mean():.1f} ± {leaky[name].std(ddof=1):.1f}" for name in ("known", "new")]
        gap = (leaky["known"] - leaky["new"]).to_numpy()
        details.append(f"| `{method}` | {cells[0]} | {cells[1]} | {interval(gap)} | {leaky['shared'].mean():.0f} % |")
        assert not table["lesion"]["shared"].any()
    sets, same = duplicates(replace(shared, columns=named))
    PAGE.write_text(
        TEXT.format(rows="\n".join(rows), details="\n".join(details), seeds=SEEDS, sets=sets, same=same),
        encoding="utf-8",
    )


TEXT = """# How much a leak inflates accuracy

HAM10000 has 10,015 pictures of 7,470 skin lesions from four sources, with seven diagnoses; two of the 28 pairs are
empty. A split by picture tests on lesions that were trained on. Here the same methods are trained on a split by
picture and on one by lesion (`--column group=lesion_id`). Test accuracy in percent, mean ± standard deviation over
{seeds} seeds, each with its own split; the difference is the inflation, with a 95 %
interval. Frozen EfficientNet-Lite0, an MLP, 1,000 steps, default hyperparameters. Written by `python -m
studies.lesion_leak`.

| method | accuracy | split by picture | split by lesion | inflation |
|---|---|---|---|---|
{rows}

The two splits have different test pictures, which blurs the difference. Within the split by picture, the same models
can be compared on test pictures of known and of new lesions, as means over the pairs that have both:

| method | lesion in training | new lesion | difference | test pictures of known lesions |
|---|---|---|---|---|
{details}

Without `--column group`, {sets} sets of duplicates and look-alikes are kept together; {same} of them show one lesion.

Known lesions have several pictures, so they may also differ from the others in kind. The data are for research only
and not part of this project.
"""


if __name__ == "__main__":
    main()
