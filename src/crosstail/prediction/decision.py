"""From scores to a decision at a site: calibrated probabilities, prevalence, and prediction sets."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration, Correction
from crosstail.metrics._link import training_shares, with_prior
from crosstail.prediction.critical import ALL, NONE, Alarms, targets
from crosstail.prediction.predictor import UNKNOWN, Predictor
from crosstail.prediction.prior import EstimatedPrior, estimate_prior, read_prior
from crosstail.prediction.sets import FALLBACK, Per, PredictionSets
from crosstail.training.result import PROBABILITIES
from crosstail.training.run import Run

Sites = NDArray[np.int64]
CHUNK = 8192  # samples at a time, so that memory does not grow with them
GROUPS: dict[Per, str] = {"pair": "the pair", "class": "the class", "site": "the site", "all": "all samples together"}
MOST, FEW = 20_000, 1000  # inputs that a prevalence is estimated from, and those that its error is


class Decided(NamedTuple):
    """Some rows: probabilities (n, C), members (n, C) of prediction sets, and which critical classes they may be of."""

    rows: slice
    probabilities: NDArray[np.float32]
    members: NDArray[np.bool_] | None
    alarms: NDArray[np.bool_] | None

    @property
    def review(self) -> NDArray[np.bool_] | None:
        """Whether a person should look (n,): at alarms, and at sets that do not have exactly one class."""
        why = [] if self.members is None else [self.members.sum(1) != 1]
        why += [] if self.alarms is None else [self.alarms.any(1)]
        return np.any(why, axis=0) if why else None


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
    alarms: Alarms | None = None
    """For the classes that must be found as often as `fit --critical` said."""
    notes: tuple[str, ...] = ()

    def probabilities(self, log_p: NDArray[np.floating], site: Sites) -> NDArray[np.float32]:
        """Probabilities (N, C) of some inputs."""
        if self.shares is None or self.correction is None:
            return self.calibration.probabilities(log_p, site, self.domains)
        return with_prior(self.correction(log_p), self.shares[site])

    def chunks(self, log_p: NDArray[np.floating], site: Sites) -> Iterator[Decided]:
        """The answers for some rows at a time."""
        for start in range(0, len(log_p), CHUNK):
            rows = slice(start, min(start + CHUNK, len(log_p)))
            p = self.probabilities(log_p[rows], site[rows])
            yield Decided(rows, p, *self.answers(p, site[rows]))

    def answers(self, p: NDArray[np.float32], site: Sites) -> tuple[NDArray[np.bool_] | None, NDArray[np.bool_] | None]:
        """The members of prediction sets, and alarms; a class that does not occur at a site is in neither."""
        members, alarms = None if self.sets is None else self.sets.members(p, site), None
        if members is not None and self.shares is not None:
            members &= self.shares[site] > 0
        if self.alarms is not None:
            alarms = self.alarms.raised(p, site)
            if self.shares is not None:
                alarms &= self.shares[site][:, self.alarms.classes] > 0
            if members is not None:
                members[:, self.alarms.classes] |= alarms
        return members, alarms

    def of_class(self, log_p: NDArray[np.floating], site: Sites, y: NDArray[np.int64]) -> NDArray[np.float32]:
        parts = [one.probabilities[np.arange(len(one.probabilities)), y[one.rows]] for one in self.chunks(log_p, site)]
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
    sets are calibrated on the run's test samples, which nothing else has used, as are thresholds for critical classes.
    """
    given = predictor.calibration
    about: dict[str, Any] = {"calibration": given, "domains": predictor.run.result.domains}
    if prior is not None:
        estimates = _estimates(given, log_p, site) if prior == "estimate" else {}
        correction = given.uniform if prior == "uniform" else given.prevalence
        shares = _shares(predictor, prior, estimates, site)
        about |= {"shares": shares, "correction": correction, "estimates": estimates}
    plain, sites, notes = Decision(**about), np.unique(site), list[str]()
    if coverage is not None:
        about["sets"] = _sets(predictor, plain, sites, coverage, per)
        notes += _fallbacks(predictor, about["sets"], sites)
    if recalls := targets(predictor.run.result.critical, predictor.classes):
        about["alarms"] = _alarms(predictor, plain, recalls)
        notes += _unreached(predictor, about["alarms"], sites)
    return replace(plain, **about, notes=tuple(notes))


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


def _alarms(predictor: Predictor, decision: Decision, recalls: dict[int, float]) -> Alarms:
    """Thresholds for critical classes from the test samples."""
    kept = _tested(predictor.run)
    kept = kept.keep(np.isin(kept.y, [*recalls]))
    assert kept.log_p is not None and kept.told.log_p is not None
    own = decision.of_class(kept.told.log_p, kept.domain, kept.y)
    nowhere = decision.of_class(kept.log_p, np.full_like(kept.domain, UNKNOWN), kept.y)
    return Alarms.calibrated(own, kept.y, kept.domain, kept.group, recalls, len(decision.domains), nowhere)


def _unreached(predictor: Predictor, alarms: Alarms, sites: Sites) -> Iterator[str]:
    """Where a recall cannot be promised, and how many more samples would do."""
    names = [*predictor.run.result.domains, "unknown site"]
    for k, c in enumerate(alarms.classes):
        recall = f"{predictor.classes[c]}={alarms.recall[k]:g}"
        for source, what in (
            (ALL, f"the recall {recall} holds over all sites together, not at each of"),
            (NONE, f"too few test samples for the recall {recall}, so every input is flagged at"),
        ):
            there = [d for d in sites if alarms.source[d, k] == source and (source == NONE or d != UNKNOWN)]
            if there:
                yield f"{what} {', '.join(f'{names[d]} ({alarms.missing[d, k]} more would do)' for d in there)}"


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
