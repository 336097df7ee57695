"""Metrics of probabilities: overall, per domain, per class and per pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch.special import gammaincc

BINS, IN_BIN, DRAWS = 15, 20, 1000


def metrics_of_every_group(
    probabilities: NDArray[np.floating],
    y: NDArray[np.int64],
    domain: NDArray[np.int64],
    *,
    domains: Sequence[str],
    classes: Sequence[str],
) -> pd.DataFrame:
    """A row for all samples, each domain, class and pair that has any: their number and all metrics.

    `domain` and `class` are empty where a row is about all of them. Balanced accuracy, F1 and AUROC (one class against
    the others) are means over the classes that the group has samples of; for a class or a pair they are those of the
    class, among all samples or those of the domain. The calibration error has an interval.

    >>> p, y = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]), np.array([0, 1, 1])
    >>> found = metrics_of_every_group(p, y, np.zeros(3, int), domains=["a"], classes=["x", "y"])
    >>> found.loc[0, ["accuracy", "auroc"]].astype(float).round(2).tolist()
    [0.67, 1.0]
    """
    rows: list[dict[str, Any]] = []
    for d in (None, *range(len(domains))):
        among = slice(None) if d is None else domain == d
        said, name = _Said.of(probabilities[among], y[among]), None if d is None else domains[d]
        if not len(said.y):
            continue
        rows.append({"domain": name, "class": None, **said.metrics()})
        rows += [{"domain": name, "class": classes[c], **said.metrics(c)} for c in np.flatnonzero(said.true).tolist()]
    return pd.DataFrame(rows)


@dataclass(frozen=True)
class _Said:
    """Answers for samples (N,), and counts by class (C,): true samples, hits, and samples predicted as this class."""

    p: NDArray[np.floating]
    y: NDArray[np.int64]
    hit: NDArray[np.bool_]
    confidence: NDArray[np.float64]
    own: NDArray[np.float64]  # the probability of the true class
    squares: NDArray[np.float64]
    true: NDArray[np.int64]
    found: NDArray[np.int64]
    taken: NDArray[np.int64]

    @classmethod
    def of(cls, p: NDArray[np.floating], y: NDArray[np.int64]) -> Self:
        said, own = p.argmax(1), p[np.arange(len(y)), y].astype(np.float64)
        hit = said == y
        squares = np.einsum("ij,ij->i", p, p, dtype=np.float64) - 2 * own + 1
        counts = (np.bincount(each, minlength=p.shape[1]) for each in (y, y[hit], said))
        return cls(p, y, hit, p.max(1).astype(np.float64), own, squares, *counts)

    def metrics(self, c: int | None = None) -> dict[str, Any]:
        """All metrics of the samples, or those of a class; its rank and errors are among all of them."""
        own, of = (slice(None), self.true > 0) if c is None else (self.y == c, [c])
        error, low, high = calibration_error(self.confidence[own], self.hit[own])
        ranked = self.auroc[of][~np.isnan(self.auroc[of])]
        return {
            "samples": len(self.y[own]),
            "accuracy": float(self.hit[own].mean()),
            "balanced_accuracy": float((self.found / self.true.clip(1))[of].mean()),
            "macro_f1": float((2 * self.found / (self.true + self.taken).clip(1))[of].mean()),
            "auroc": float(ranked.mean()) if len(ranked) else float("nan"),
            "log_loss": float(-np.log(self.own[own].clip(1e-12)).mean()),
            "brier": float(self.squares[own].mean()),
            "calibration_error": error,
            "calibration_low": low,
            "calibration_high": high,
        }

    @cached_property
    def auroc(self) -> NDArray[np.float64]:
        """For each class (C,), the probability that a sample of it has a higher score for it than another one."""
        found = np.full(len(self.true), np.nan)
        for c in np.flatnonzero((self.true > 0) & (self.true < len(self.y))):
            n = int(self.true[c])
            _, of, same = np.unique(self.p[:, c], return_inverse=True, return_counts=True)
            rank = (np.cumsum(same) - (same - 1) / 2)[of]  # equal values share the mean of their ranks
            found[c] = (rank[self.y == c].sum() - n * (n + 1) / 2) / (n * (len(self.y) - n))
        return found


def calibration_error(
    confidence: NDArray[np.float64], hit: NDArray[np.bool_], weights: NDArray[np.float64] | None = None, seed: int = 0
) -> tuple[float, float, float]:
    """Mean |confidence − accuracy| over bins of about equal size, and its 95 % interval.

    Few samples make bins differ by chance, which only ever adds to the error. The interval, from normal draws for each
    bin, makes up for it, so the estimate may lie above it. It begins at 0 if a χ² test finds no difference at all.

    >>> round(calibration_error(np.full(100, 0.8), np.arange(100) < 60)[0], 2)
    0.2
    """
    table = reliability(confidence, hit, weights)
    share, gap = table["share"].to_numpy(), (table["confidence"] - table["accuracy"]).to_numpy()
    deviation = table["deviation"].to_numpy()
    error = float(share @ np.abs(gap))
    drawn = np.abs(gap + deviation * np.random.default_rng(seed).standard_normal((DRAWS, len(gap)))) @ share
    bias = drawn.mean() - error
    low, high = np.quantile(drawn, [0.025, 0.975]) - (2 * bias, bias)
    differ = float(((gap / deviation.clip(1e-9)) ** 2).sum())
    if float(gammaincc(*torch.tensor([len(gap), differ], dtype=torch.float64) / 2)) >= 0.025:
        low = 0.0
    return error, float(max(low, 0.0)), float(min(high, 1.0))


def reliability(
    confidence: NDArray[np.float64], hit: NDArray[np.bool_], weights: NDArray[np.float64] | None = None
) -> pd.DataFrame:
    """Bins of about equal weight, with equal confidences together: mean confidence, accuracy, share and samples.

    `deviation` is the standard error of the difference between the first two.
    """
    w = np.ones(len(hit)) if weights is None else weights
    of = bins_of(confidence, w)
    bins = int(of.max()) + 1
    total = np.bincount(of, w, minlength=bins)
    kept = total > 0
    total = np.where(kept, total, 1)
    mean, right = (np.bincount(of, w * each, minlength=bins) / total for each in (confidence, hit))
    around = (w * (confidence - hit - (mean - right)[of])) ** 2
    number = np.bincount(of, minlength=bins)
    deviation = np.sqrt(np.bincount(of, around, minlength=bins) * number / (number - 1).clip(1)) / total
    found = {"confidence": mean, "accuracy": right, "share": total / w.sum(), "samples": number, "deviation": deviation}
    return pd.DataFrame(found)[kept].reset_index(drop=True)


def bins_of(confidence: NDArray[np.float64], w: NDArray[np.float64]) -> NDArray[np.int64]:
    """The bin of each sample (N,): bins have about equal weight, and equal confidences are in one."""
    bins = int(np.clip(w.sum() ** 2 / (w**2).sum() / IN_BIN, 1, BINS))
    values, same = np.unique(confidence, return_inverse=True)
    of_value = np.bincount(same, w, minlength=len(values))
    middle = (np.cumsum(of_value) - of_value / 2) / w.sum()
    return np.minimum((middle * bins).astype(np.int64), bins - 1)[same]
