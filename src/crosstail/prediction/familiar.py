"""Inputs that are unlike anything in training, and whether a site still resembles its training samples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from crosstail.data.splits.groups import fold_of
from crosstail.metrics import Answers
from crosstail.metrics._calibration import sample_weights
from crosstail.metrics._link import training_shares
from crosstail.prediction.decision import prevalence
from crosstail.prediction.predictor import UNKNOWN, Predictor
from crosstail.prediction.prior import SIGMAS, EstimatedPrior
from crosstail.prediction.sets import FALLBACK, PredictionSets

RATE = 0.05  # of ordinary inputs that are flagged
FOLDS = 5
LEAST, MOST, KEPT = 30, 2000, 1000  # inputs of a site that are compared with training: with fewer, nothing can be said
MOST_CLASSES = 100  # whose prevalence is estimated
NOTABLE, SHIFTED = 0.55, 0.02  # what an interval must lie above to be called drift, and away from a class's share

Floats = NDArray[np.float64]


def limits(held_out: Answers) -> Floats:
    """The distance (D + 1,) above which an input of a site is flagged, the last for an unknown site.

    With n held-out samples of the site, it is their ⌈(n + 1) (1 − RATE)⌉-th smallest distance: an input that is
    exchangeable with them is flagged with a probability of at most RATE (split conformal prediction). A site with too
    few samples has the limit of all sites together.
    """

    def of(part: Answers) -> Floats:
        assert part.distance is not None
        one = np.zeros(len(part), np.int64)  # class: all samples of a site are one group
        how: dict[str, Any] = {"num_sites": len(part.domains), "num_classes": 1, "coverage": 1 - RATE, "per": "site"}
        sets = PredictionSets.calibrated(-part.distance, one, part.domain, **how)
        return np.where(sets.source < len(FALLBACK["site"]), -sets.least, np.inf)[:, 0]

    return np.append(of(held_out.told)[:-1], of(held_out)[-1])


def flagged(held_out: Answers, *, told: bool = True) -> NDArray[np.bool_]:
    """Which held-out samples would be flagged if their site is `told` or unknown, each by limits from others.

    Groups are kept whole.
    """
    distance = held_out.told.distance if told else held_out.distance
    site, found = held_out.domain if told else np.full(len(held_out), UNKNOWN), np.zeros(len(held_out), bool)
    assert distance is not None
    groups = len(held_out) if held_out.group is None else len(np.unique(held_out.group))
    fold = fold_of(held_out.pair, held_out.group, min(FOLDS, groups), seed=0)
    for k in range(int(fold.max(initial=0)) + 1):
        found |= (fold == k) & (distance > limits(held_out.keep(fold != k))[site])
    return found


@dataclass(frozen=True)
class Drift:
    """How the inputs of a site differ from held-out samples of it, at the prevalence of the inputs."""

    inputs: int
    flagged: int
    usual: float
    """Share of the held-out samples that would be flagged."""
    farther: tuple[float, float, float]
    """How often an input is farther from the training samples than a held-out sample, with its 95 % interval."""
    less_sure: tuple[float, float, float]
    """How often the model is less sure of an input than of a held-out sample."""
    prior: EstimatedPrior | None
    trained: Floats
    """Shares of the classes in training (C,)."""

    @property
    def shifted(self) -> NDArray[np.int64]:
        """Classes whose share differs from training, the largest difference first."""
        if self.prior is None:
            return np.empty(0, np.int64)
        gap = np.maximum(self.prior.low - self.trained, self.trained - self.prior.high)
        order = np.argsort(-np.abs(self.prior.share - self.trained), kind="stable")
        return order[gap[order] > SHIFTED]


class Familiar:
    """The limits of a run, and the distances and answers of inputs, which are collected a part at a time."""

    def __init__(self, predictor: Predictor, held_out: Answers) -> None:
        self.predictor, self.held_out, self.limits = predictor, held_out, limits(held_out)
        self.seen: list[tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.floating]]] = []
        self.counts, self.rng = np.zeros((len(self.limits), 2), np.int64), np.random.default_rng(0)

    @classmethod
    def of(cls, predictor: Predictor) -> "Familiar | None":
        """None if the model does not measure distances, or the run kept none of held-out samples."""
        kept = predictor.run.held_out
        return cls(predictor, kept.every) if kept and len(kept) and kept.every.distance is not None else None

    def flags(
        self, site: NDArray[np.int64], distance: NDArray[np.float32], log_p: NDArray[np.floating]
    ) -> NDArray[np.bool_]:
        """Which inputs (n,) are unlike anything in training; some of them are kept for `drift`."""
        found: NDArray[np.bool_] = distance > self.limits[site]
        some = self.rng.permutation(len(site))[:KEPT]
        self.seen.append((site[some], distance[some], log_p[some]))
        for d in np.unique(site):
            self.counts[d] += (site == d).sum(), found[site == d].sum()
        return found

    def drift(self) -> dict[int, Drift]:
        """What the inputs of each site with enough of them show."""
        if not self.seen:
            return {}
        site, distance, log_p = (np.concatenate(each) for each in zip(*self.seen, strict=True))
        found: dict[int, Drift] = {}
        usual: dict[int, float] = {}
        for told in {d != UNKNOWN for d in site.tolist()}:
            alarms = flagged(self.held_out, told=told)
            of = self.held_out.domain if told else np.full(len(alarms), UNKNOWN)
            usual |= {d: float(alarms[of == d].mean()) for d in np.unique(of).tolist()}
        for d in np.unique(site).tolist():
            some = self.rng.permutation(np.flatnonzero(site == d))[:MOST]
            if one := self._drift(d, distance[some], log_p[some], usual.get(d, RATE)):
                found[d] = one
        return found

    def _drift(
        self, site: int, distance: NDArray[np.float32], log_p: NDArray[np.floating], usual: float
    ) -> Drift | None:
        of = self.held_out if site == UNKNOWN else self.held_out.told.keep(self.held_out.domain == site)
        if min(len(distance), len(of)) < LEAST:
            return None
        assert of.distance is not None and of.log_p is not None
        shares = training_shares(of.counts)
        trained = shares[of.counts.sum(1) > 0].mean(0) if site == UNKNOWN else shares[site]
        given = self.predictor.calibration
        prior = prevalence(given, log_p) if log_p.shape[1] <= MOST_CLASSES and given.samples else None
        wanted = trained if prior is None else prior.share
        weights = sample_weights(of.y, np.zeros_like(of.y), wanted[None])
        farther = superiority(distance, of.distance, weights, of.group)
        less_sure = superiority(-log_p.max(1), -of.log_p.max(1), weights, of.group)
        inputs, alarms = self.counts[site].tolist()
        return Drift(inputs, alarms, usual, farther, less_sure, prior, trained)


def superiority(
    new: NDArray[np.floating], old: NDArray[np.floating], weights: Floats, group: NDArray[np.int64] | None
) -> tuple[float, float, float]:
    """How often a new value is greater than an old one, ties counting half, with a 95 % interval.

        A = Σ_j w_j t_j,  Var A ≈ Var(s) / n + Σ_g (Σ_{j in g} w_j (t_j − A))²

    where t_j is the share of the new values above old value j, s_i the weighted share of the old values below new value
    i, and g a group of old samples (DeLong et al., 1988).
    """
    w = weights / weights.sum()
    ranked = np.sort(new)
    t = 1 - (np.searchsorted(ranked, old, "left") + np.searchsorted(ranked, old, "right")) / (2 * len(new))
    order = np.argsort(old, kind="stable")
    below = np.append(0.0, np.cumsum(w[order]))
    s = (below[np.searchsorted(old[order], new, "left")] + below[np.searchsorted(old[order], new, "right")]) / 2
    share = float(w @ t)
    of = np.arange(len(old)) if group is None else np.unique(group, return_inverse=True)[1]
    error = SIGMAS * float(np.sqrt(s.var(ddof=1) / len(new) + (np.bincount(of, w * (t - share)) ** 2).sum()))
    return share, max(0.0, share - error), min(1.0, share + error)


def said_of(drift: Drift, site: str, classes: Sequence[str], prior: str | None) -> str:
    """One line for a site: what differs from training, and what to do."""

    def percent(value: float, low: float, high: float) -> str:
        return f"{100 * value:.0f} % ({100 * low:.0f} to {100 * high:.0f})"

    shifted, given = drift.shifted, drift.prior
    found = [
        f"{site}: {drift.flagged:,} of {drift.inputs:,} unlike training (usually {100 * drift.usual:.0f} %)",
        f"farther than held-out ones {percent(*drift.farther)}, less sure {percent(*drift.less_sure)} (usually 50 %)",
    ]
    if given is not None:
        c = shifted[0] if len(shifted) else int(np.abs(given.share - drift.trained).argmax())
        share = percent(given.share[c], given.low[c], given.high[c])
        found.append(f"{classes[c]} {share}, in training {100 * drift.trained[c]:.0f} %")
    if drift.farther[1] > NOTABLE:
        todo = "They look different. If they are what the model is for, label some and fit again"
    elif drift.less_sure[1] > NOTABLE:
        todo = "They are harder: label some and fit again"
    elif len(shifted) and prior is None:
        todo = "Only the prevalence differs: add --prior estimate where frequent classes should count more"
    else:
        todo = "As in training: nothing to do"
    return f"{'; '.join(found)}. {todo}."
