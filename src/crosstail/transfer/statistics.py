"""α, β, γ: exactly from the matrix of all pairs or, where that is too large, from random targets for each sample."""

from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from crosstail.losses.distances import Precision, each_part, matched_distances

TARGETS = 8  # random pairs that each sample is compared with, for each of the three statistics
ELEMENTS = 2**22  # of the gathered targets in memory at once


class TransferStatistics(NamedTuple):
    """Mean transferability (a distance) between pairs that share the class (α), the domain (β), or neither (γ)."""

    alpha: float
    beta: float
    gamma: float

    @property
    def separation(self) -> float:
        """(β + γ) − α, which the paper finds to correlate with accuracy."""
        return self.beta + self.gamma - self.alpha


class Estimate(NamedTuple):
    """α, β, γ and their standard errors."""

    statistics: TransferStatistics
    errors: TransferStatistics


def exact_statistics(matrix: NDArray[np.float64], pairs: NDArray[np.int64]) -> TransferStatistics:
    """Definition 3 from a matrix (P, P) between pairs (P, 2); NaN where no two such pairs exist.

    Nested expectations, innermost first; they differ from one flat mean only where pairs are absent.
    """
    (_, d), (_, c) = (np.unique(axis, return_inverse=True) for axis in pairs.T)
    place = np.full((d.max() + 1, c.max() + 1), -1)  # of each pair in the matrix
    place[d, c] = np.arange(len(pairs))
    alike = place[:, c].T  # (P, D), where the class of each pair is in each domain
    own = np.arange(place.shape[0]) == d[:, None]
    to_class = np.where(alike >= 0, np.take_along_axis(matrix, np.maximum(alike, 0), axis=1), np.nan)  # (P, D)
    number = np.bincount(d) - (alike >= 0)  # of other classes in each domain
    rest = _grouped_sum(matrix.T, d).T - np.nan_to_num(to_class)
    to_others = np.where(number > 0, rest / np.maximum(number, 1), np.nan)  # (P, D)
    alpha = _mean(_grouped_mean(_mean(np.where(own, np.nan, to_class), 1), c), 0)
    beta = _mean(_grouped_mean(to_others[own], d), 0)
    gamma = _mean(_mean(_grouped_mean(np.where(own, np.nan, to_others), d), 1), 0)
    return TransferStatistics(float(alpha), float(beta), float(gamma))


def _grouped_sum(values: NDArray[Any], group: NDArray[np.int64]) -> NDArray[np.float64]:
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], np.arange(group.max() + 1))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0, dtype=np.float64))


def _grouped_mean(values: NDArray[np.float64], group: NDArray[np.int64]) -> NDArray[np.float64]:
    return _quotient(_grouped_sum(np.nan_to_num(values), group), _grouped_sum(~np.isnan(values), group))


def _mean(values: NDArray[np.float64], axis: int) -> NDArray[np.float64]:
    """Mean over an axis, ignoring NaN; NaN where there is nothing else."""
    return _quotient(np.nansum(values, axis), (~np.isnan(values)).sum(axis))


def _quotient(total: Any, number: Any) -> NDArray[np.float64]:
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


class SampledStatistics:
    r"""Definition 3 in O(P·F) memory: each sample meets `TARGETS` random pairs for each of α, β, γ.

    Each statistic is Σ_i a_i E[d(z_i, μ_q)], with a weight a_i of sample i and a random pair q: its class in another
    domain (α), another class of its domain (β), or another class of another domain (γ). With K independent draws per
    sample this is estimated without bias, and so is its variance, from the variance s_i² of the draws of each sample:

    .. math:: \hat\alpha = \sum_i \frac{a_i}{K} \sum_k d(z_i, \mu_{q_{ik}}), \quad
        \mathrm{se}^2 = \sum_i \frac{a_i^2 s_i^2}{K}

    It is the error of drawing targets, given the samples.
    """

    def __init__(
        self, counts: NDArray[np.int64], centroids: Tensor, precision: Precision | None = None, targets: int = TARGETS
    ) -> None:
        """Counts (D, C), and the centroids (P, F) and precisions of the pairs that are present, domains outermost."""
        self._centroids, self._precision, self._targets = centroids, precision, targets
        self._present, self._counts = counts > 0, counts
        self._random = [np.random.default_rng(seed) for seed in range(3)]  # one each: chunks do not matter
        self._total, self._variance = np.zeros(3), np.zeros(3)
        present = self._present
        self._in_domain, self._in_class = present.sum(1), present.sum(0)
        self._start_domain, self._start_class = (np.cumsum(n) - n for n in (self._in_domain, self._in_class))
        self._rank_in_domain, self._rank_in_class = (present.cumsum(axis) - 1 for axis in (1, 0))
        domain, label = present.nonzero()
        self._by_class = np.lexsort((domain, label))  # pairs, classes outermost
        self._domains = np.flatnonzero(self._in_domain)
        self._place = np.cumsum(self._in_domain > 0) - 1  # of a domain among those with pairs
        self._only = np.argmax(present, axis=1)  # the class of a domain that has one
        # γ averages over the other domains that have another class: not if both have one class, and the same.
        single = self._in_domain == 1
        twins = np.bincount(self._only[single], minlength=present.shape[1])[self._only] - 1
        self._others = np.where(self._in_domain > 0, len(self._domains) - 1 - np.where(single, twins, 0), 0)

    def add(self, z: Tensor, y: NDArray[np.int64], domain: NDArray[np.int64]) -> None:
        """Features (B, F) of samples with these classes and domains (B,)."""
        size = max(1, ELEMENTS // (self._targets * z.shape[1]))
        for i in range(0, len(z), size):
            part = slice(i, i + size)
            for kind, draw in enumerate((self._alpha, self._beta, self._gamma)):
                pairs, weight = draw(y[part], domain[part], self._random[kind])  # (B, K)
                values = weight * self._distances(z[part], np.where(weight > 0, pairs, 0))
                self._total[kind] += values.mean(1).sum()
                self._variance[kind] += values.var(1, ddof=1).sum() / self._targets

    def estimate(self) -> Estimate:
        """The statistics, NaN where no two such pairs exist."""
        known = [self._in_class.max() > 1, self._in_domain.max() > 1, self._others.max() > 0]
        values, errors = (np.where(known, found, np.nan) for found in (self._total, self._variance**0.5))
        return Estimate(TransferStatistics(*values.tolist()), TransferStatistics(*errors.tolist()))

    def _distances(self, z: Tensor, pairs: NDArray[np.int64]) -> NDArray[np.float64]:
        at = torch.from_numpy(pairs.ravel())

        def choose(table: Tensor) -> Tensor:
            return table.index_select(0, at)

        found = matched_distances(z, choose(self._centroids), each_part(self._precision, choose))
        return found.numpy().astype(np.float64)

    def _alpha(self, y: Any, domain: Any, random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """E_c E_d E_{d′ ≠ d}."""
        j, weight = self._same(y, self._in_class, self._rank_in_class[domain, y], self._counts[domain, y], random)
        return self._by_class[np.minimum(self._start_class[y][:, None] + j, len(self._by_class) - 1)], weight

    def _beta(self, y: Any, domain: Any, random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """E_d E_c E_{c′ ≠ c}."""
        j, weight = self._same(
            domain, self._in_domain, self._rank_in_domain[domain, y], self._counts[domain, y], random
        )
        return self._start_domain[domain][:, None] + j, weight

    def _same(self, of: Any, sizes: Any, rank: Any, counts: Any, random: np.random.Generator) -> tuple[Any, Any]:
        number = sizes[of]
        j = _another(random.random((len(of), self._targets)), number, rank)
        weight = (number > 1) / ((sizes > 1).sum().clip(1) * number * counts)
        return j, np.broadcast_to(weight[:, None], j.shape)

    def _gamma(self, y: Any, domain: Any, random: np.random.Generator) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """E_d E_{d′ ≠ d} E_c E_{c′ ≠ c}, each over what is present."""
        uniform = random.random((len(y), self._targets, 2))
        number = len(self._domains)
        at = _another(uniform[..., 0], np.full(len(y), number), self._place[domain])
        target = self._domains[np.minimum(at, number - 1)]  # (B, K), d′
        has_class = self._present[target, y[:, None]]
        choices = self._in_domain[target] - has_class
        j = (uniform[..., 1] * choices).astype(np.int64)
        j += has_class & (j >= self._rank_in_domain[target, y[:, None]])
        # Classes of d that have another one in d′: all of them, but for the only class of d′.
        single = self._in_domain[target] == 1
        classes = self._in_domain[domain][:, None] - (single & self._present[domain[:, None], self._only[target]])
        chosen = (choices > 0) & (number > 1)  # else its term is absent
        pairs = (self._others > 0).sum().clip(1) * self._others[domain].clip(1)[:, None] * classes.clip(1)
        return self._start_domain[target] + j, chosen * (number - 1.0) / (pairs * self._counts[domain, y][:, None])


def _another(uniform: NDArray[np.float64], number: NDArray[np.int64], own: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers below `number` (B,) other than `own` (B,), from uniform ones (B, K)."""
    found = (uniform * (number - 1)[:, None]).astype(np.int64)
    return np.asarray(found + (found >= own[:, None]))
