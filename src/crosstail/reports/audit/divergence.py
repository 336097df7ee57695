"""Divergence of the domains' label distributions from uniform and from each other."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelDivergence:
    """The two terms of the paper's appendix "Unified Interpretation for Single- and Multi-Domain Imbalance".

    A domain without samples has no distribution: its entries are NaN and excluded from every sum and mean.
    """

    from_uniform: Floats  # (D,) div(p_d ‖ U), bits
    between: Floats  # (D, D) div(p_d ‖ p_d'), bits, symmetric, 0 on the diagonal
    imbalance_ratio: Floats  # (D,) largest over smallest class count, empty classes excluded
    effective_classes: Floats  # (D,) 2^H(p_d), the size of a uniform distribution with equal entropy
    samples: NDArray[np.int64]  # (D,)
    num_classes: int

    @property
    def imbalance(self) -> float:
        """The first term as a mean, comparable across numbers of domains: Σ_d div(p_d ‖ U) / D; 0 without domains."""
        return _mean(self.from_uniform)

    @property
    def mismatch(self) -> float:
        """The second term as a mean: Σ_{d≠d'} div(p_d ‖ p_d') / D(D − 1); 0 with one domain."""
        return _mean(_off_diagonal(self.between))

    @property
    def total(self) -> float:
        """Σ_d div(p_d ‖ U) + const · Σ_{d≠d'} div(p_d ‖ p_d') with const = 1; both orders of two domains count."""
        return float(np.nansum(self.from_uniform) + np.nansum(_off_diagonal(self.between)))

    @property
    def chance_imbalance(self) -> float:
        """The `imbalance` expected by chance if every class were equally likely: (C − 1) / (8 n ln 2).

        Small samples look imbalanced by chance. To second order, the Jensen–Shannon divergence of two similar
        distributions is χ² / (8 ln 2), whose mean is known.
        """
        with np.errstate(divide="ignore"):
            noise = (self.num_classes - 1) / (8 * np.log(2) * self.samples)
        return min(1.0, _mean(np.where(self.samples > 0, noise, np.nan)))

    @property
    def chance_mismatch(self) -> float:
        """The `mismatch` expected by chance if all domains were alike: (C − 1) (1 / n + 1 / n') / (8 ln 2)."""
        with np.errstate(divide="ignore"):
            inverse = np.where(self.samples > 0, 1 / self.samples, np.nan)
        noise = (self.num_classes - 1) * (inverse[:, None] + inverse[None, :]) / (8 * np.log(2))  # (D, D)
        return min(1.0, _mean(_off_diagonal(noise)))

    def farthest(self) -> tuple[int, int] | None:
        """The two domains whose labels differ most, or None with fewer than two."""
        if np.count_nonzero(self.samples) < 2:
            return None
        first = np.triu(np.ones_like(self.between, np.bool_), 1) & ~np.isnan(self.between)  # each unordered pair once
        d, other = np.unravel_index(np.argmax(np.where(first, self.between, -1)), first.shape)
        return int(d), int(other)


def label_divergence(counts: ArrayLike) -> LabelDivergence:
    """Compare the label distributions p_d of the domains, given their counts (D, C).

    In both terms, div is the Jensen–Shannon divergence in bits:

        div(p ‖ q) = ½ KL(p ‖ m) + ½ KL(q ‖ m),   m = (p + q) / 2

    The paper leaves div open. This choice is symmetric, finite even with empty classes, 0 for equal distributions
    and 1 for distributions with no class in common.

    >>> both = label_divergence([[30, 10], [10, 30]])
    >>> both.from_uniform.round(3).tolist(), both.between.round(3).tolist(), round(both.total, 3)
    ([0.049, 0.049], [[0.0, 0.189], [0.189, 0.0]], 0.475)
    """
    n = np.asarray(counts)
    if n.ndim != 2 or n.shape[1] == 0 or n.dtype.kind not in "iu" or (n < 0).any():
        raise ValueError(f"counts is {n.dtype} of shape {n.shape}, expected non-negative integers (D, C)")
    samples = n.sum(axis=1)
    with np.errstate(invalid="ignore"):
        p = n / samples[:, None]  # (D, C), NaN for a domain without samples
    uniform = np.full_like(p, 1 / n.shape[1])
    between = np.stack([jensen_shannon(np.broadcast_to(row, p.shape), p) for row in p]) if len(p) else np.zeros((0, 0))
    smallest = np.where(n > 0, n, np.iinfo(np.int64).max).min(axis=1)
    return LabelDivergence(
        from_uniform=jensen_shannon(p, uniform),
        between=between,
        imbalance_ratio=np.where(samples > 0, n.max(axis=1) / smallest, np.nan),
        effective_classes=2 ** -_plogq(p, p).sum(axis=-1),
        samples=samples.astype(np.int64),
        num_classes=n.shape[1],
    )


def jensen_shannon(p: ArrayLike, q: ArrayLike) -> Floats:
    """Jensen–Shannon divergence in bits between distributions (..., C).

    >>> jensen_shannon([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]).tolist()
    [0.0, 1.0]
    """
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    m = (p + q) / 2
    both = (_plogq(p, p) - _plogq(p, m)) + (_plogq(q, q) - _plogq(q, m))  # (..., C)
    return np.asarray(np.clip(both.sum(axis=-1) / 2, 0, 1))  # rounding may give −1e-17


def _plogq(p: Floats, q: Floats) -> Floats:
    """p · log2 q with 0 · log2 0 = 0."""
    return p * np.log2(np.where((p > 0) & (q > 0), q, 1), where=p == p, out=np.full_like(p, np.nan))


def _off_diagonal(matrix: Floats) -> Floats:
    return matrix[~np.eye(len(matrix), dtype=np.bool_)]


def _mean(values: NDArray[Any]) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else 0.0
