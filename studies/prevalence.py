"""Probabilities and estimated prevalences at a site, on real data: docs/results/prevalence.md.

Needs the runs of studies/coverage.py. The held-out samples of each are divided anew, whole groups together, into a
part for the calibration, as large as the validation set, and one that is tested. Takes five minutes on one core:

    python -m studies.prevalence --runs runs/coverage
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration, sample_weights
from crosstail.metrics._link import training_shares, with_prior
from crosstail.metrics._reliability import calibration_error
from crosstail.prediction.prior import estimate_prior
from crosstail.training.held_out import HeldOut
from crosstail.training.result import RunResult
from crosstail.training.run import Run

PAGE = Path(__file__).parents[1] / "docs/results/prevalence.md"
SETS = {"digits": "digits", "ham10000 by lesion": "ham10000", "crisis": "crisis"}
FITS = ("as the model says", "a fit with equal pairs", "a fit at the prevalence")
INTERVALS = ("a fit with equal pairs", "a fit at the prevalence", "with the error of the fit")
LEAST, MOST, FREQUENT = 40, 200, 0.05


def divisions(kept: HeldOut, times: int, rng: np.random.Generator) -> Iterator[NDArray[np.bool_]]:
    """Random choices of validation samples, of whole groups."""
    every = kept.every
    group = np.arange(len(every)) if every.group is None else np.unique(every.group, return_inverse=True)[1]
    share = len(kept.validation) / len(kept)
    for _ in range(times):
        yield (rng.random(group.max() + 1) < share)[group]


def losses(given: Calibration, test: Answers, result: RunResult) -> list[list[float]]:
    """Log loss and calibration error, in points and as a mean over sites, at every site's own prevalence."""
    counts, log_p = np.array(result.counts), test.told()
    shares, weights = training_shares(counts)[test.domain], sample_weights(test.y, test.domain, counts)
    said = [
        given.probabilities(log_p, test.domain, result.domains),
        *(with_prior(fit(log_p), shares) for fit in (given.uniform, given.prevalence)),
    ]
    found = []
    for p in said:
        own, hit = p[np.arange(len(p)), test.y].clip(1e-12), p.argmax(1) == test.y
        sites = [test.domain == d for d in np.unique(test.domain[weights > 0])]
        errors = [calibration_error(p.max(1)[s].astype(float), hit[s], weights[s])[0] for s in sites]
        found.append([float(-weights @ np.log(own) / weights.sum()), 100 * float(np.mean(errors))])
    return found


def batch(y: NDArray[np.int64], share: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64] | None:
    """Rows of a sample with these shares, none of them twice; None if there are too few of a class."""
    there, present = np.bincount(y, minlength=len(share)), share > 0
    number = int(min(MOST, 0.7 * (there[present] / share[present]).min()))
    drawn = rng.multinomial(number, share)
    if number < LEAST or (drawn > there).any():
        return None
    return np.concatenate([rng.permutation(np.flatnonzero(y == c))[:n] for c, n in enumerate(drawn)])


def covered(
    given: Calibration, test: Answers, counts: NDArray[np.int64], own: bool, rng: np.random.Generator
) -> Iterator[NDArray[np.float64]]:
    """For each kind of interval, class and site: inside or not, width, and whether the class is frequent (3, C, 3)."""
    for d in range(len(counts)):
        site = test.keep(test.domain == d)
        share = counts[d].astype(float) if own else np.sqrt(counts[d]) * rng.exponential(size=counts.shape[1])
        share *= np.bincount(site.y, minlength=counts.shape[1]) >= (3 if own else 5)
        share /= share.sum()
        rows = batch(site.y, share, rng)
        if rows is None:
            continue
        log_p = site.told.log_p[rows]
        prevalence = given.prevalence(log_p)
        found = (
            estimate_prior(given.uniform(log_p)),
            estimate_prior(prevalence),
            estimate_prior(prevalence, (other(log_p) for other in given.plausible)),
        )
        inside = [(one.low <= share) & (share <= one.high) for one in found]
        yield np.stack([np.stack([i, f.high - f.low, share > FREQUENT], 1) for i, f in zip(inside, found, strict=True)])


def main() -> None:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=Path, default=Path("runs/coverage"))
    parser.add_argument("--divisions", type=int, default=30)
    given = parser.parse_args()
    probabilities, intervals = [], []
    for name, place in SETS.items():
        run, rng = Run(given.runs / place), np.random.default_rng(0)
        result, kept = run.result, run.held_out
        assert kept is not None, f"{run.path} has no probabilities"
        found, shown = [], {"that of training": [], "another one": []}
        for validation in divisions(kept, given.divisions, rng):
            parts = HeldOut(kept.every.keep(validation), kept.every.keep(~validation))
            fit, test = parts.calibration(), parts.test
            found.append(losses(fit, test, result))
            for kind, own in zip(shown, (True, False), strict=True):
                shown[kind] += covered(fit, test, np.array(result.counts), own, rng)
        for what, (loss, error) in zip(FITS, np.mean(found, axis=0), strict=True):
            probabilities.append(f"| {name} | {what} | {loss:.3f} | {error:.1f} |")
        for kind, batches in shown.items():
            for k, what in enumerate(INTERVALS):
                inside, width, frequent = np.concatenate([one[k] for one in batches]).T
                shares = [100 * inside[frequent == f].mean() for f in (1, 0)]
                cells = f"{shares[0]:.1f} | {shares[1]:.1f} | {100 * width[frequent == 1].mean():.0f}"
                intervals.append(f"| {name} | {kind} | {len(batches)} | {what} | {cells} |")
        print("\n".join([*probabilities[-3:], *intervals[-6:]]), flush=True)
    about = {"divisions": given.divisions, "most": MOST}
    PAGE.write_text(TEXT.format(probabilities="\n".join(probabilities), intervals="\n".join(intervals), **about))


TEXT = """# Probabilities and prevalence at a site, on real data

Written by `python -m studies.prevalence`. The default on fixed features; its held-out samples are divided {divisions}
times, whole groups together, into a part for the calibration and one that is tested.

**Probabilities with `--prior train`**, where classes are as frequent at every site as in training: log loss, and
calibration error in points (mean over sites). *A fit with equal pairs* has temperature and biases fitted with all
pairs weighted equally; *a fit at the prevalence* has them fitted at the prevalence of training, and is what `predict`
uses.

| set | probabilities | log loss | calibration error |
|---|---|---|---|
{probabilities}

**Intervals of `--prior estimate`.** Batches of up to {most} tested samples of one site with a known prevalence: as in
training, or another at random. How many of the 95 % intervals contain the true share, in %, for classes with a share
above 5 % and for the others, and the mean width of the former in points. The first two kinds of interval treat the
calibration as exact; the last, which `predict` prints, adds its error.

| set | prevalence | batches | intervals | frequent classes | rare classes | width |
|---|---|---|---|---|---|---|
{intervals}
"""


if __name__ == "__main__":
    main()
