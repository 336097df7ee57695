"""Thresholds that find critical classes as often as asked for: conformal risk control."""

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from crosstail import discovery

Recalls = Mapping[str, float | None]
"""Classes that must not be missed, with the recall that each should reach where one was asked for."""
SURE = 0.95  # of the bound of a recall
SITE, ALL, NONE = range(3)  # where a threshold comes from: the site, all sites together, or too few samples


def threshold(p: NDArray[np.floating], group: NDArray[np.int64], recall: float) -> tuple[float, float, int]:
    """The highest threshold that keeps a recall, from the probability of their class that samples of it have.

        λ = max { λ : (Σ_g L_g(λ) + 1) / (n + 1) ≤ 1 − recall },

    where L_g(λ) is the share of the samples of group g, of n, with a probability below λ. Conformal risk control
    (Angelopoulos et al., 2024, equation 4): if a new group is exchangeable with these, the expected share of its
    samples that is missed is at most 1 − recall, whatever the model. Without groups, every sample is one.

    Returns λ, a bound that the recall exceeds with probability `SURE` over the choice of these groups, and n. Fewer
    than `needed` groups cannot promise the recall: λ and the bound are then NaN.
    """
    _, number, size = np.unique(group, return_inverse=True, return_counts=True)
    n, order = len(size), np.argsort(p)
    values, below = p[order], np.concatenate([[0], np.cumsum(1 / size[number[order]])])
    missed = below[np.searchsorted(values, values)]  # Σ L_g at each of these probabilities
    kept = missed + 1 <= (n + 1) * (1 - recall) + 1e-9
    if not kept.any():
        return np.nan, np.nan, n
    from scipy.special import betaincinv  # here, because most predictions need it not

    last = int(np.flatnonzero(kept)[-1])
    # Of n independent samples, m missed, the recall has the distribution Beta(n − m, m + 1) over their choice.
    sure = float(betaincinv(n - missed[last], missed[last] + 1, 1 - SURE))
    return float(values[last]), sure, n


def needed(recall: float) -> int:
    """The fewest groups with which a recall can be promised.

    >>> needed(0.95), needed(0.9)
    (19, 9)
    """
    return math.ceil(1 / (1 - recall) - 1 - 1e-9)


@dataclass(frozen=True)
class Alarms:
    """The least probability (D + 1, K) from which a sample may be of each critical class; the last row is for samples
    of unknown site.

    A site with too few samples of the class has the threshold of all sites together, which keeps the recall on average
    over the sites only, or a lower one that finds all of its n own samples: it promises n / (n + 1) there. If those of
    all sites are too few, every sample is flagged.
    """

    classes: NDArray[np.int64]  # (K,)
    recall: NDArray[np.float64]  # (K,)
    least: NDArray[np.float64]  # (D + 1, K)
    sure: NDArray[np.float64]  # (D + 1, K), the bounds; NaN where nothing is promised
    groups: NDArray[np.int64]  # (D + 1, K), that there are at the site
    source: NDArray[np.int64]  # (D + 1, K): SITE, ALL or NONE

    @classmethod
    def calibrated(
        cls,
        own: NDArray[np.floating],
        y: NDArray[np.int64],
        site: NDArray[np.int64],
        group: NDArray[np.int64] | None,
        recalls: Mapping[int, float],
        num_sites: int,
        nowhere: NDArray[np.floating] | None = None,
    ) -> "Alarms":
        """From the probability of their class, the class and the site of samples that the model has not used.

        `nowhere` are the probabilities with the site unknown, if they differ.
        """
        group = np.arange(len(y)) if group is None else group
        shape = num_sites + 1, len(recalls)
        least, sure, groups, source = np.zeros(shape), np.full(shape, np.nan), np.zeros(shape, int), np.full(shape, ALL)
        for k, (c, recall) in enumerate(recalls.items()):
            rows = y == c
            every = threshold(own[rows], group[rows], recall)
            for d in range(num_sites):
                there = rows & (site == d)
                least[d, k], sure[d, k], groups[d, k] = threshold(own[there], group[there], recall)
                source[d, k] = ALL if np.isnan(least[d, k]) else SITE
                if source[d, k] == ALL:
                    least[d, k] = min(every[0], own[there].min(initial=1))
                    sure[d, k] = (1 - SURE) ** (1 / groups[d, k]) if groups[d, k] else np.nan  # of Beta(n, 1)
            least[-1, k], sure[-1, k], groups[-1, k] = (
                every if nowhere is None else threshold(nowhere[rows], group[rows], recall)
            )
        source[np.isnan(least)] = NONE
        return cls(
            np.array([*recalls], np.int64), np.array([*recalls.values()]), np.nan_to_num(least), sure, groups, source
        )

    def raised(self, probabilities: NDArray[np.floating], site: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which samples (N,) from these sites, −1 for unknown ones, may be of which critical class (N, K)."""
        found: NDArray[np.bool_] = probabilities[:, self.classes] >= self.least.astype(probabilities.dtype)[site]
        return found

    def at(self, sites: Sequence[int]) -> "Alarms":
        """The same for these sites only, −1 for an unknown one."""
        rows = [*sites, -1]
        parts = {name: getattr(self, name)[rows] for name in ("least", "sure", "groups", "source")}
        return replace(self, **parts)

    @property
    def missing(self) -> NDArray[np.int64]:
        """How many more groups (D + 1, K) would do for a threshold of the site's own."""
        return (np.array([needed(recall) for recall in self.recall]) - self.groups).clip(0)


def targets(recalls: Recalls, classes: Sequence[str]) -> dict[int, float]:
    """The recall asked for of each class, by number."""
    return {classes.index(name): recall for name, recall in recalls.items() if recall is not None}


def read_critical(words: Iterable[str], classes: Sequence[str]) -> dict[str, float | None]:
    """Classes, and the recall that each should reach, from `CLASS` or `CLASS=RECALL`.

    >>> read_critical(["mel=0.95", "a=b"], ["a=b", "mel"])
    {'mel': 0.95, 'a=b': None}
    """
    found: dict[str, float | None] = {}
    for word in words:
        name, equals, asked = (word, "", "") if word in classes or "=" not in word else word.rpartition("=")
        if name not in classes:
            raise ValueError(f"--critical {word}: {discovery.suggestion(name, list(classes))}")
        found[name] = None
        if equals:
            with suppress(ValueError):
                found[name] = float(asked)
            if not 0 < (found[name] or 0) < 1:
                raise ValueError(f"--critical {word}: the recall is {asked!r}, expected a share such as 0.95")
    return found


def critical_words(recalls: Recalls) -> list[str]:
    """The words that `read_critical` reads.

    >>> critical_words({'mel': 0.95, 'nv': None})
    ['mel=0.95', 'nv']
    """
    return [name if recall is None else f"{name}={recall:g}" for name, recall in recalls.items()]
