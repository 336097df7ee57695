"""Do prediction sets keep their promise on real data? docs/results/coverage.md.

Fits the default on three data sets, then divides their test samples 200 times into two halves, one for the thresholds
and one that is counted. Takes three minutes on one core once the images are embedded:

    python -m studies.coverage --data ../shared/data --out runs/coverage
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch
from studies.result_options import result_options

from crosstail.metrics._reliability import calibration_error
from crosstail.prediction.sets import FALLBACK, PredictionSets
from crosstail.training import RunSpec
from crosstail.training.fit import train_run
from crosstail.training.run import Run

PAGE = Path(__file__).parents[1] / "docs/results/coverage.md"
COVERAGE, SPLITS = 0.9, 200
LESIONS = {"domain": "source", "label": "diagnosis", "group": "lesion_id"}


def runs(data: Path, out: Path) -> Iterator[tuple[str, Run]]:
    """The default on fixed features of each set."""
    frozen = {"backbone": "efficientnet_lite0", "tune": "none"}
    yield "digits", train_run(RunSpec(dataset="digits", **frozen), out / "digits")
    lesions = RunSpec(dataset=str(data / "ham10000/manifest.csv"), columns=LESIONS, **frozen)
    yield "ham10000 by lesion", train_run(lesions, out / "ham10000")
    yield "crisis", train_run(RunSpec(dataset=str(data / "crisis.npz")), out / "crisis")


def measured(run: Run, per: str) -> tuple[list[str], float, float]:
    """Groups below nominal minus two standard errors, of how many, and the mean coverage and size over all samples."""
    assert run.held_out is not None
    test, domains = run.held_out.test, run.result.domains
    p = run.held_out.calibration().probabilities(test.told.log_p, test.domain, domains)
    own, pair = p[np.arange(len(p)), test.y], test.pair
    group = {"all": 0 * pair, "site": test.domain, "class": test.y, "pair": pair}[per]
    lesion = np.arange(len(pair)) if test.group is None else np.unique(test.group, return_inverse=True)[1]
    rng, shares, sizes, every = np.random.default_rng(0), np.full((SPLITS, group.max() + 1), np.nan), [], []
    for split in range(SPLITS):
        half = (rng.random(lesion.max() + 1) < 0.5)[lesion]  # whole groups
        about = {"num_sites": len(domains), "num_classes": p.shape[1], "coverage": COVERAGE, "per": per}
        sets = PredictionSets.calibrated(own[half], test.y[half], test.domain[half], **about)
        members = sets.members(p[~half], test.domain[~half])
        inside = members[np.arange(len(members)), test.y[~half]]
        promised = sets.source[test.domain[~half], test.y[~half]] == 0
        for g in np.unique(group[~half][promised]):
            shares[split, g] = inside[promised & (group[~half] == g)].mean()
        sizes.append(members.sum(1).mean())
        every.append(inside.mean())
    often = (~np.isnan(shares)).sum(0) >= SPLITS // 2
    mean, error = np.nanmean(shares[:, often], 0), np.nanstd(shares[:, often], 0) / np.sqrt(SPLITS)
    below = [f"{value:.3f}" for value, e in zip(mean, error, strict=True) if value < COVERAGE - 2 * e]
    groups = f"{int(often.sum())} of {len(np.unique(group))}"
    cells = [groups, f"{mean.min():.3f} to {mean.max():.3f}", ", ".join(below) or "none"]
    return cells, float(np.mean(every)), float(np.mean(sizes))


def main() -> None:
    """Fit, measure and write the page."""
    given = result_options(__doc__, "runs/coverage").parse_args()
    torch.set_num_threads(1)
    rows, calibration = [], []
    for name, run in runs(given.data, given.out):
        for per in FALLBACK:
            (groups, spread, below), every, size = measured(run, per)
            rows.append(f"| {name} | `{per}` | {groups} | {spread} | {below} | {every:.3f} | {size:.2f} |")
            print(rows[-1], flush=True)
        assert run.held_out is not None
        test, domains, hit = run.held_out.test, run.result.domains, run.held_out.test.correct
        said = run.held_out.calibration().probabilities(test.log_p, -1, domains).max(1)
        weights = 1 / np.bincount(test.pair)[test.pair]
        before = 100 * calibration_error(np.exp(test.log_p.max(1).astype(float)), hit, weights)[0]
        error, low, high = (100 * value for value in calibration_error(said.astype(float), hit, weights))
        calibration.append(f"| {name} | {before:.1f} | {error:.1f} ({low:.1f} to {high:.1f}) |")
    text = TEXT.format(rows="\n".join(rows), calibration="\n".join(calibration), splits=SPLITS, coverage=COVERAGE)
    PAGE.write_text(text, encoding="utf-8")


TEXT = """# Prediction sets and calibration on real data

The default on fixed features ([how to use it](../howto/deploy.md)). The test samples are divided {splits} times at
random into two halves of whole groups: thresholds for a coverage of {coverage} come from one, the other is counted.
For groups with enough samples for a threshold of their own in at least half of the divisions: the lowest and
highest mean coverage, and groups below {coverage} minus two standard errors. Last, all samples: mean coverage and size
of the sets.
Written by `python -m studies.coverage`.

| set | `--per` | groups | mean coverage of a group | below | all samples | classes per set |
|---|---|---|---|---|---|---|
{rows}

Calibration error on all test samples with all pairs weighted equally, in points, as trained and with the run's
temperatures (95 % interval). The default's parameters minimise cross-validated log loss already, so temperatures from
few validation samples add nothing here.

| set | as trained | calibrated |
|---|---|---|
{calibration}
"""


if __name__ == "__main__":
    main()
