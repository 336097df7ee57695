"""Ranks of several methods on several data sets, and which of them differ (Demšar, 2006)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.metrics._methods import LEVEL


@dataclass(frozen=True)
class Ranks:
    """Ranks (sets, methods) from 1, the best; ties share the mean of theirs."""

    ranks: NDArray[np.float64]
    p_value: float  # Friedman's test of equal performance, in Iman and Davenport's form
    critical: float  # Nemenyi's critical difference: mean ranks that are closer than this do not differ significantly

    @property
    def mean(self) -> NDArray[np.float64]:
        """Mean rank (methods,)."""
        return self.ranks.mean(axis=0)


def compare_ranks(values: ArrayLike) -> Ranks:
    """Ranks of values (sets, methods), of which larger ones are better.

    With N sets, k methods and mean ranks R_j, Friedman's statistic is χ² = 12 N / (k (k + 1)) Σ_j (R_j − (k + 1) / 2)²,
    and F = (N − 1) χ² / (N (k − 1) − χ²) has k − 1 and (k − 1)(N − 1) degrees of freedom. Nemenyi's critical
    difference is q √(k (k + 1) / 6N), where q is the studentised range of k means over √2.
    """
    from scipy.special import fdtrc  # here, because most commands do not need it
    from scipy.stats import rankdata, studentized_range

    ranks = rankdata(-np.asarray(values, float), axis=1)
    sets, methods = ranks.shape
    spread = ((ranks.mean(axis=0) - (methods + 1) / 2) ** 2).sum()
    chi2, most = 12 * sets / (methods * (methods + 1)) * spread, sets * (methods - 1)
    p_value = fdtrc(methods - 1, (methods - 1) * (sets - 1), (sets - 1) * chi2 / (most - chi2)) if chi2 < most else 0.0
    q = studentized_range.ppf(1 - LEVEL, methods, np.inf) / 2**0.5
    return Ranks(ranks, float(p_value), float(q * (methods * (methods + 1) / (6 * sets)) ** 0.5))
