"""From scores to a decision at a site: calibrated probabilities, its prevalence, and sets that contain the truth."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from crosstail.prediction.predictor import UNKNOWN, Predictor
from crosstail.prediction.prior import EstimatedPrior, estimate_prior, read_prior, with_prior
from crosstail.prediction.sets import FALLBACK, Per, PredictionSets
from crosstail.training.probabilities import Probabilities
from crosstail.training.result import PROBABILITIES

Sites = NDArray[np.int64]


@dataclass(frozen=True)
class Decided:
    """What is said of some inputs."""

    probabilities: NDArray[np.float32]  # (N, C)
    members: NDArray[np.bool_] | None  # (N, C), of the prediction sets
    estimates: dict[int, EstimatedPrior]  # of the prevalence, by site
    notes: tuple[str, ...]


def decide(
    predictor: Predictor,
    log_p: NDArray[np.floating],
    site: Sites,
    *,
    prior: str | None = None,
    coverage: float | None = None,
    per: Per = "pair",
) -> Decided:
    """Probabilities of inputs with these log probabilities (N, C) and sites (N,), which may be UNKNOWN.

    Without a `prior` they are for pairs that are equally frequent, which is what models are selected and tested for,
    and the predicted class is the model's own. With one they are for classes with these shares: `uniform`, those of
    the `train`ing samples of each site, those in a .csv file, or those that are `estimate`d from the inputs of a site.
    With a `coverage`, a prediction set is calibrated on the test samples of the run, which nothing else has used.
    """
    shares, estimates = _shares(predictor, log_p, site, prior)
    probabilities = _probabilities(predictor, log_p, site, shares)
    if coverage is None:
        return Decided(probabilities, None, estimates, ())
    sets, notes = _sets(predictor, shares, site, coverage, per)
    return Decided(probabilities, sets.members(probabilities, site), estimates, notes)


def _shares(
    predictor: Predictor, log_p: NDArray[np.floating], site: Sites, prior: str | None
) -> tuple[NDArray[np.float64] | None, dict[int, EstimatedPrior]]:
    """Shares of the classes at every site (D + 1, C), the last for unknown ones; None leaves them as they are."""
    if prior is None:
        return None, {}
    counts = np.array(predictor.result.counts, np.float64)
    if prior == "uniform":
        table = np.broadcast_to((counts.sum(0) > 0).astype(float), (len(counts) + 1, counts.shape[1]))
    elif prior == "train":
        more = counts + (counts.sum(0) > 0)  # one more of each class: what a site has not shown may still occur there
        own = more / more.sum(1, keepdims=True)
        table = np.vstack([own, own[counts.sum(1) > 0].mean(0)])
    elif prior == "estimate":
        estimates = {int(d): estimate_prior(predictor.calibration.balanced(log_p[site == d])) for d in np.unique(site)}
        everywhere = np.mean([one.share for one in estimates.values()], axis=0)
        table = np.stack([estimates[d].share if d in estimates else everywhere for d in (*range(len(counts)), UNKNOWN)])
        return table, estimates
    else:
        table = np.broadcast_to(read_prior(Path(prior), predictor.classes), (len(counts) + 1, counts.shape[1]))
    return table / table.sum(1, keepdims=True).clip(1e-12), {}


def _probabilities(
    predictor: Predictor, log_p: NDArray[np.floating], site: Sites, shares: NDArray[np.float64] | None
) -> NDArray[np.float32]:
    if shares is None:
        return predictor.calibration.probabilities(log_p, site, predictor.result.domains)
    return with_prior(predictor.calibration.balanced(log_p), shares[site]).astype(np.float32)


def _tested(predictor: Predictor) -> Probabilities:
    """The test samples of a run, with the probabilities that it kept of them."""
    folder = predictor.folder
    kept = Probabilities.load(folder)
    if kept is None:
        raise ValueError(f"{folder.path} has no {PROBABILITIES}: run its `crosstail fit` command again, which adds it")
    return kept.part(test=True)


def _sets(
    predictor: Predictor, shares: NDArray[np.float64] | None, site: Sites, coverage: float, per: Per
) -> tuple[PredictionSets, tuple[str, ...]]:
    """Prediction sets from the test samples, and which of the promised groups were too small for these sites."""
    kept, number = _tested(predictor), len(predictor.result.domains)
    if not len(kept.y):
        raise ValueError(f"{predictor.folder.path} has no test samples to calibrate prediction sets on")
    nowhere = np.full_like(kept.domain, UNKNOWN)
    by_site = [
        PredictionSets.calibrated(
            _probabilities(predictor, said, where, shares),
            kept.y,
            kept.domain,
            num_sites=number,
            coverage=coverage,
            per=per,
        )
        for said, where in ((kept.told(), kept.domain), (kept.unknown, nowhere))
    ]
    known, unknown = by_site
    sets = PredictionSets(
        np.vstack([known.least[:-1], unknown.least[-1:]]),
        np.vstack([known.source[:-1], unknown.source[-1:]]),
        coverage,
        per,
    )
    return sets, _fallbacks(predictor, sets, np.unique(site))


def _fallbacks(predictor: Predictor, sets: PredictionSets, sites: Sites) -> tuple[str, ...]:
    """Which groups had too few samples, and what was used in their place."""
    names, used = [*predictor.result.domains, "unknown site"], FALLBACK[sets.per]
    found: dict[int, list[str]] = {}
    for d in sites:
        for c, level in enumerate(sets.source[d]):
            if level:
                found.setdefault(int(level), []).append(f"{names[d]} / {predictor.classes[c]}")
    return tuple(
        "too few test samples for a threshold of their own, so "
        + (f"that of the {used[level]} is used" if level < len(used) else "every class is in the set")
        + f": {', '.join(pairs[:8])}"
        + (f" and {len(pairs) - 8} more" if len(pairs) > 8 else "")
        for level, pairs in sorted(found.items())
    )
