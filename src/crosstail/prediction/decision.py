"""From scores to a decision at a site: calibrated probabilities, prevalence, and prediction sets."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration, Correction
from crosstail.metrics._link import training_shares, with_prior
from crosstail.prediction.predictor import UNKNOWN, Predictor
from crosstail.prediction.prior import EstimatedPrior, estimate_prior, read_prior
from crosstail.prediction.sets import FALLBACK, Per, PredictionSets
from crosstail.training.result import PROBABILITIES
from crosstail.training.run import Run

Sites = NDArray[np.int64]
CHUNK = 8192  # samples at a time, so that memory does not grow with them
GROUPS: dict[Per, str] = {"pair": "the pair", "class": "the class", "site": "the site", "all": "all samples together"}
MOST, FEW = 20_000, 1000  # inputs that a prevalence is estimated from, and those that its error is


@dataclass(frozen=True)
class Decision:
    """Turns log probabilities (N, C) of inputs from sites (N,), which may be UNKNOWN, into answers."""

    calibration: Calibration
    domains: list[str]
    shares: NDArray[np.float64] | None = None
    """Class shares at every site (D + 1, C), the last row for unknown sites; None applies no prior."""
    correction: Correction | None = None
    """Turns scores into probabilities for equally frequent classes, to be multiplied by the shares."""
    estimates: dict[int, EstimatedPrior] = field(default_factory=dict)
    """Estimated shares, by site."""
    sets: PredictionSets | None = None
    notes: tuple[str, ...] = ()

    def probabilities(self, log_p: NDArray[np.floating], site: Sites) -> NDArray[np.float32]:
        """Probabilities (N, C) of some inputs."""
        if self.shares is None or self.correction is None:
            return self.calibration.probabilities(log_p, site, self.domains)
        return with_prior(self.correction(log_p), self.shares[site])

    def chunks(
        self, log_p: NDArray[np.floating], site: Sites
    ) -> Iterator[tuple[slice, NDArray[np.float32], NDArray[np.bool_] | None]]:
        """Some rows at a time: their probabilities (n, C), and the members (n, C) of their prediction sets, if any."""
        for start in range(0, len(log_p), CHUNK):
            rows = slice(start, min(start + CHUNK, len(log_p)))
            found = self.probabilities(log_p[rows], site[rows])
            members = None if self.sets is None else self.sets.members(found, site[rows])
            if members is not None and self.shares is not None:
                members &= self.shares[site[rows]] > 0  # a class that does not occur at a site is in no set
            yield rows, found, members

    def of_class(self, log_p: NDArray[np.floating], site: Sites, y: NDArray[np.int64]) -> NDArray[np.float32]:
        parts = [p[np.arange(len(p)), y[rows]] for rows, p, _ in self.chunks(log_p, site)]
        return np.concatenate([np.zeros(0, np.float32), *parts])


def decide(
    predictor: Predictor,
    log_p: NDArray[np.floating],
    site: Sites,
    *,
    prior: str | None = None,
    coverage: float | None = None,
    per: Per = "pair",
) -> Decision:
    """How to decide for inputs with these log probabilities (N, C) and sites (N,), which may be UNKNOWN.

    Without a `prior`, probabilities are for equally frequent pairs, which is what models are selected and tested for,
    and the predicted class is the model's own. A `prior` gives the shares of the classes: `uniform`, `train` (as in
    training at each site), a .csv file, or `estimate` (from the inputs of each site). With a `coverage`, prediction
    sets are calibrated on the run's test samples, which nothing else has used.
    """
    given = predictor.calibration
    about: dict[str, Any] = {"calibration": given, "domains": predictor.run.result.domains}
    if prior is not None:
        estimates = _estimates(given, log_p, site) if prior == "estimate" else {}
        correction = given.uniform if prior == "uniform" else given.prevalence
        shares = _shares(predictor, prior, estimates, site)
        about |= {"shares": shares, "correction": correction, "estimates": estimates}
    if coverage is not None:
        sets = _sets(predictor, Decision(**about), np.unique(site), coverage, per)
        about |= {"sets": sets, "notes": _fallbacks(predictor, sets, np.unique(site))}
    return Decision(**about)


def question_of(prior: str | None) -> str:
    """Which question answers are for, and the option for the other one."""
    if prior is None:
        return (
            "these answers are for pairs that are all equally important; add --prior train where frequent classes "
            "should count more, or another --prior"
        )
    how = {"uniform": "equally frequent", "train": "as frequent as in training", "estimate": "as frequent as estimated"}
    known = how.get(prior, f"as frequent as {prior} says")
    return f"these answers are for classes that are {known}; without --prior, every pair is equally important"


def _estimates(given: Calibration, log_p: NDArray[np.floating], site: Sites) -> dict[int, EstimatedPrior]:
    """The prevalence at every site, from a random part of its inputs if there are many."""
    found, rng = {}, np.random.default_rng(0)
    for d in np.unique(site):
        found[int(d)] = prevalence(given, log_p[rng.permutation(np.flatnonzero(site == d))[:MOST]])
    return found


def prevalence(given: Calibration, log_p: NDArray[np.floating]) -> EstimatedPrior:
    """The prevalence among inputs in random order; its error is estimated from the first of them."""
    return estimate_prior(given.prevalence(log_p), (other(log_p[:FEW]) for other in given.plausible))


def _shares(predictor: Predictor, prior: str, estimates: dict[int, EstimatedPrior], site: Sites) -> NDArray[np.float64]:
    """Shares of the classes at every site (D + 1, C), the last for unknown ones.

    Estimates get one more sample of each class, as training samples do: one that these inputs have not shown may occur.
    """
    counts = np.array(predictor.run.result.counts)
    known = counts.sum(0) > 0
    if prior == "train":
        own = training_shares(counts)
        return np.vstack([own, own[counts.sum(1) > 0].mean(0)])
    if prior == "estimate":
        inputs = {d: int((site == d).sum()) for d in estimates}
        found = {d: (one.share * inputs[d] + known) / (inputs[d] + known.sum()) for d, one in estimates.items()}
        everywhere: NDArray[np.float64] = np.mean(list(found.values()), axis=0)
        every: list[NDArray[np.float64]] = [found.get(d, everywhere) for d in (*range(len(counts)), UNKNOWN)]
        return np.stack(every)
    equal = known / max(1, int(known.sum()))
    share = equal if prior == "uniform" else read_prior(Path(prior), predictor.classes)
    return np.broadcast_to(share, (len(counts) + 1, counts.shape[1]))


def _tested(run: Run) -> Answers:
    if run.held_out is None:
        raise ValueError(f"{run.path} has no {PROBABILITIES}: run its `crosstail fit` command again, which adds it")
    if not len(run.held_out.test):
        raise ValueError(f"{run.path} has no test samples to calibrate prediction sets on")
    return run.held_out.test


def _sets(predictor: Predictor, decision: Decision, sites: Sites, coverage: float, per: Per) -> PredictionSets:
    """Prediction sets from the test samples, for inputs from these sites."""
    kept = _tested(predictor.run)
    if decision.shares is not None:  # classes that do not occur at a site have no guarantee there
        kept = kept.keep(decision.shares[kept.domain, kept.y] > 0)
    how: dict[str, Any] = {"num_sites": len(decision.domains), "num_classes": len(predictor.classes)}
    how |= {"coverage": coverage, "per": per}
    assert kept.log_p is not None and kept.told.log_p is not None
    told = decision.of_class(kept.told.log_p, kept.domain, kept.y)
    found = PredictionSets.calibrated(told, kept.y, kept.domain, **how)
    if UNKNOWN not in sites:
        return found
    own = decision.of_class(kept.log_p, np.full_like(kept.domain, UNKNOWN), kept.y)
    nowhere = PredictionSets.calibrated(own, kept.y, kept.domain, **how)
    least = np.vstack([found.least[:-1], nowhere.least[-1:]])
    return PredictionSets(least, np.vstack([found.source[:-1], nowhere.source[-1:]]), coverage, per)


def _fallbacks(predictor: Predictor, sets: PredictionSets, sites: Sites) -> tuple[str, ...]:
    """Which groups had too few samples, and what was used in their place."""
    names, used = [*predictor.run.result.domains, "unknown site"], FALLBACK[sets.per]
    found: dict[int, list[str]] = {}
    notes = []
    for d in sites:
        first = next(i for i, group in enumerate(used) if d != UNKNOWN or group not in ("pair", "site"))
        if first:
            holds = "for each class" if used[first] == "class" else "over all inputs together"
            notes.append(f"where the site is unknown, the coverage holds {holds}, not for each {used[0]}")
        for c, level in enumerate(sets.source[d]):
            if level > first:
                found.setdefault(int(level), []).append(f"{names[d]} / {predictor.classes[c]}")
    return (
        *notes,
        *(
            "too few test samples for a threshold of their own, so "
            + (f"that of {GROUPS[used[level]]} is used" if level < len(used) else "every class is in the set")
            + f": {', '.join(pairs[:8])}"
            + (f" and {len(pairs) - 8} more" if len(pairs) > 8 else "")
            for level, pairs in sorted(found.items())
        ),
    )
