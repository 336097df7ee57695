"""How far the label distributions of the domains are from uniform and from each other, before any training."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class LabelDivergence:
    """The two terms of the paper's appendix "Unified Interpretation for Single- and Multi-Domain Imbalance".

    A domain without samples has no distribution: its entries are NaN, and every sum and mean leaves it out.
    """

    from_uniform: Floats  # (D,) div(p_d ‖ U), bits
    between: Floats  # (D, D) div(p_d ‖ p_d'), bits, symmetric, 0 on the diagonal
    imbalance_ratio: Floats  # (D,) largest over smallest count of a class, those without a sample left out
    effective_classes: Floats  # (D,) 2^H(p_d): a uniform distribution over so many classes is as spread out
    samples: NDArray[np.int64]  # (D,)
    num_classes: int

    @property
    def imbalance(self) -> float:
        """The first term as a mean: Σ_d div(p_d ‖ U) / D, so that sets with more domains compare; 0 without domains."""
        return _mean(self.from_uniform)

    @property
    def mismatch(self) -> float:
        """The second term as a mean: Σ_{d≠d'} div(p_d ‖ p_d') / D(D − 1); 0 with one domain."""
        return _mean(self._off_diagonal(self.between))

    @property
    def total(self) -> float:
        """Σ_d div(p_d ‖ U) + const · Σ_{d≠d'} div(p_d ‖ p_d') with const = 1; both orders of two domains count."""
        return float(np.nansum(self.from_uniform) + np.nansum(self._off_diagonal(self.between)))

    @property
    def chance_imbalance(self) -> float:
        """The `imbalance` to expect of samples of these sizes if every class were equally likely: (C − 1) / (8 n ln 2).

        A small sample looks uneven by chance alone. To second order the Jensen–Shannon divergence of two near
        distributions is χ² / (8 ln 2), whose mean is known.
        """
        with np.errstate(divide="ignore"):
            noise = (self.num_classes - 1) / (8 * np.log(2) * self.samples)
        return min(1.0, _mean(np.where(self.samples > 0, noise, np.nan)))

    @property
    def chance_mismatch(self) -> float:
        """The `mismatch` to expect of such samples of one distribution: (C − 1) (1 / n + 1 / n') / (8 ln 2)."""
        with np.errstate(divide="ignore"):
            inverse = np.where(self.samples > 0, 1 / self.samples, np.nan)
        noise = (self.num_classes - 1) * (inverse[:, None] + inverse[None, :]) / (8 * np.log(2))  # (D, D)
        return min(1.0, _mean(self._off_diagonal(noise)))

    def farthest(self) -> tuple[int, int] | None:
        """The two domains whose labels differ most, or None with fewer than two."""
        if np.count_nonzero(self.samples) < 2:
            return None
        first = np.triu(np.ones_like(self.between, np.bool_), 1) & ~np.isnan(self.between)  # each two domains once
        d, other = np.unravel_index(np.argmax(np.where(first, self.between, -1)), first.shape)
        return int(d), int(other)

    def _off_diagonal(self, matrix: Floats) -> Floats:
        return matrix[~np.eye(len(matrix), dtype=np.bool_)]


def label_divergence(counts: ArrayLike) -> LabelDivergence:
    """Measure the label distributions p_d of the domains by their counts (D, C).

    div is the Jensen–Shannon divergence in bits, for both terms:

        div(p ‖ q) = ½ KL(p ‖ m) + ½ KL(q ‖ m),   m = (p + q) / 2

    The paper leaves div open. This one is symmetric, finite whatever classes are empty, 0 for equal distributions
    and 1 for two that have no class in common.

    >>> both = label_divergence([[30, 10], [10, 30]])
    >>> both.from_uniform.round(3).tolist(), both.between.round(3).tolist(), round(both.total, 3)
    ([0.049, 0.049], [[0.0, 0.189], [0.189, 0.0]], 0.475)
    """
    n = np.asarray(counts)
    if n.ndim != 2 or n.shape[1] == 0 or n.dtype.kind not in "iu" or (n < 0).any():
        raise ValueError(f"counts is {n.dtype} of shape {n.shape}, expected integers (D, C) from 0 up")
    samples = n.sum(axis=1)
    with np.errstate(invalid="ignore"):
        p = n / samples[:, None]  # (D, C), a row of NaN for a domain without samples
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
    """The Jensen–Shannon divergence in bits of distributions (..., C).

    >>> jensen_shannon([[0.5, 0.5], [1.0, 0.0]], [[0.5, 0.5], [0.0, 1.0]]).tolist()
    [0.0, 1.0]
    """
    p, q = np.asarray(p, np.float64), np.asarray(q, np.float64)
    m = (p + q) / 2
    both = (_plogq(p, p) - _plogq(p, m)) + (_plogq(q, q) - _plogq(q, m))  # (..., C)
    return np.asarray(np.clip(both.sum(axis=-1) / 2, 0, 1))  # rounding may leave −1e-17


def _plogq(p: Floats, q: Floats) -> Floats:
    """p · log2 q with 0 · log2 0 = 0."""
    return p * np.log2(np.where(p > 0, q, 1), where=p == p, out=np.full_like(p, np.nan))


def _mean(values: NDArray[Any]) -> float:
    there = values[~np.isnan(values)]
    return float(there.mean()) if len(there) else 0.0
