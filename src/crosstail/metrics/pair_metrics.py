"""Metrics of probabilities for every pair and domain, with first-order standard errors (the infinitesimal jackknife).

The influence of a sample is by how much a metric changes per unit of its weight. A metric varies with the test samples
as the sum of their influences does, so that one pass over the samples shows how certain it is, and, from the
differences between the influences of two models, how certain the difference between them is.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from crosstail.criterion import Metric
from crosstail.metrics.pair_scores import log_losses
from crosstail.metrics.probabilities import bins_of
from crosstail.metrics.views import pair_weights

OF_CLASSES = ("macro_f1", "balanced_accuracy", "auroc")
"""Metrics of a class against the others: that of a domain is their mean over its classes."""

Floats: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MetricValues:
    """A metric of every pair (D, C) and domain (D,); NaN without samples, for AUROC also without other classes."""

    totals: NDArray[np.int64]  # (D, C)
    pairs: Floats  # (D, C)
    domains: Floats  # (D,)
    errors: Floats  # (D, C): standard errors of the pairs, if samples are independent
    influence: Floats  # (2, N), of each sample on the mean over pairs and on that over domains


@dataclass(frozen=True)
class _Parts:
    """The influence of samples on the metric of groups, in parts: sample, group, value. A group may have several."""

    sample: NDArray[np.int64]
    group: NDArray[np.int64]
    value: Floats

    def weighted(self, weights: Floats, n: int) -> Floats:
        """The influence (n,) of each sample on Σ w · metric."""
        return np.bincount(self.sample, weights[self.group] * self.value, minlength=n).astype(np.float64)

    def errors(self, groups: int) -> Floats:
        """√ Σ influence² of each group; the parts of a sample in one group must be one."""
        return np.sqrt(np.bincount(self.group, self.value**2, minlength=groups))


def metric_values(
    metric: Metric,
    p: NDArray[np.floating],
    predicted: NDArray[np.int64],
    y: NDArray[np.int64],
    domain: NDArray[np.int64],
    num_domains: int,
) -> MetricValues:
    """A metric other than accuracy of probabilities (N, C), with predicted class, class and domain (N,) of each sample.

    `macro_f1` and `auroc` of a pair are those of its class, among all samples of the domain; its balanced accuracy is
    its accuracy; the others are means over its own samples.

    >>> p, y = np.array([[0.8, 0.2], [0.3, 0.7], [0.6, 0.4]]), np.array([0, 1, 1])
    >>> metric_values("macro_f1", p, p.argmax(1), y, np.zeros(3, int), 1).pairs.round(2).tolist()
    [[0.67, 0.67]]
    """
    shape, n = (num_domains, p.shape[1]), len(y)
    pair, said = domain * shape[1] + y, domain * shape[1] + predicted
    totals = np.bincount(pair, minlength=shape[0] * shape[1])
    hit = predicted == y
    own_p = p.astype(np.float64)
    if metric == "macro_f1":
        pairs, parts = _f1(pair, said, totals)
    elif metric == "auroc":
        pairs, parts = _auroc(own_p, y, domain, shape)
    elif metric == "calibration_error":
        pairs, parts = _calibration(own_p.max(1), hit, pair, len(totals))
    else:
        true = own_p[np.arange(n), y]
        each = {"balanced_accuracy": hit.astype(np.float64), "log_loss": log_losses(np.log(true.clip(1e-300)))}
        each["brier"] = (own_p**2).sum(1) - 2 * true + 1
        pairs, parts = _means(each[metric], pair, totals)
    table, counts = pairs.reshape(shape), totals.reshape(shape)
    defined = ~np.isnan(table)
    by_class = metric in OF_CLASSES
    weights = pair_weights(defined if by_class else counts, "average") if defined.any() else np.zeros(shape)
    domains, of_domains = np.full(shape[0], np.nan), parts.weighted(weights.ravel(), n)
    if metric == "calibration_error":
        domains, in_domains = _calibration(own_p.max(1), hit, domain, shape[0])
        of_domains = in_domains.weighted(~np.isnan(domains) / max((~np.isnan(domains)).sum(), 1), n)
    else:
        share = weights.sum(1)
        known = share > 0
        domains[known] = (weights * np.nan_to_num(table)).sum(1)[known] / share[known]
    of_pairs = parts.weighted((defined / max(defined.sum(), 1)).ravel(), n)
    errors = np.where(defined, parts.errors(len(totals)).reshape(shape), np.nan)
    return MetricValues(counts, table, domains, errors, np.stack([of_pairs, of_domains]))


def standard_error(influence: Floats, group: NDArray[np.int64] | None = None) -> float:
    """The standard error of a metric from the influences (N,) of samples, those of one group summed.

    >>> standard_error(np.array([0.3, -0.3, 0.4])), standard_error(np.array([0.3, -0.3, 0.4]), np.array([0, 0, 1]))
    (0.5830951894845301, 0.4)
    """
    together = influence if group is None else np.bincount(np.unique(group, return_inverse=True)[1], influence)
    return float(np.sqrt((together**2).sum()))


def _means(values: Floats, group: NDArray[np.int64], totals: NDArray[np.int64]) -> tuple[Floats, _Parts]:
    """The mean of each group, and (v − mean) / n, made larger by √(n / (n − 1)) as the mean is of the same values."""
    means = np.divide(np.bincount(group, values, minlength=len(totals)), totals, where=totals > 0, out=_nan(totals))
    n = totals[group]
    value = (values - means[group]) / n * np.sqrt(n / (n - 1).clip(1))
    return means, _Parts(np.arange(len(values)), group, value)


def _f1(pair: NDArray[np.int64], said: NDArray[np.int64], totals: NDArray[np.int64]) -> tuple[Floats, _Parts]:
    """F1 = 2 h / (n + m) for h hits of n samples, m of them and of others taken for the class; its derivatives."""
    hits, taken = np.bincount(pair[pair == said], minlength=len(totals)), np.bincount(said, minlength=len(totals))
    both = totals + taken
    f1 = np.divide(2 * hits, both, where=totals > 0, out=_nan(totals))
    right = pair == said
    own = np.where(right, 2 - 2 * f1[pair], -f1[pair]) / both[pair]
    wrong = ~right & (totals[said] > 0)
    taken_for = -f1[said[wrong]] / both[said[wrong]]
    sample = np.arange(len(pair))
    parts = zip((sample, pair, own), (sample[wrong], said[wrong], taken_for), strict=True)
    return f1, _Parts(*(np.concatenate(part) for part in parts))


def _auroc(p: Floats, y: NDArray[np.int64], domain: NDArray[np.int64], shape: tuple[int, int]) -> tuple[Floats, _Parts]:
    """One class against the others of the domain, with the components of DeLong et al. (1988).

    For a sample of the class it is the share of the others with a lower score, and the other way round.
    """
    found, parts = np.full(shape[0] * shape[1], np.nan), []
    for d in range(shape[0]):
        rows = np.flatnonzero(domain == d)
        for c in np.unique(y[rows]):
            positive = y[rows] == c
            n = np.where(positive, positive.sum(), (~positive).sum())
            if positive.all():
                continue
            scores = p[rows, c]
            within = np.empty(len(rows))
            for side in (positive, ~positive):
                within[side] = rankdata(scores[side])
            below = (rankdata(scores) - within) / (len(rows) - n)  # share of the other side with lower scores
            component = np.where(positive, below, 1 - below)
            area = component[positive].mean()
            found[d * shape[1] + c] = area
            value = (component - area) / n * np.sqrt(n / (n - 1).clip(1))
            parts.append((rows, np.full(len(rows), d * shape[1] + c), value))
    empty: tuple[NDArray[Any], ...] = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))
    return found, _Parts(*(np.concatenate(part) for part in zip(empty, *parts, strict=True)))


def _calibration(
    confidence: Floats, hit: NDArray[np.bool_], group: NDArray[np.int64], groups: int
) -> tuple[Floats, _Parts]:
    """Σ_bins |Σ (confidence − hit)| / n of each group, as `calibration_error` has it; bins are taken as fixed."""
    found, value = np.full(groups, np.nan), np.zeros(len(group))
    for g in np.unique(group):
        own = group == g
        gap, of = confidence[own] - hit[own], bins_of(confidence[own], np.ones(own.sum()))
        sums, sizes = np.bincount(of, gap), np.bincount(of)
        found[g] = np.abs(sums).sum() / own.sum()
        around = gap - (sums / sizes.clip(1))[of]
        value[own] = np.sign(sums)[of] * around / own.sum() * np.sqrt(sizes / (sizes - 1).clip(1))[of]
    return found, _Parts(np.arange(len(group)), group, value)


def _nan(like: NDArray[np.int64]) -> Floats:
    return np.full(len(like), np.nan)
