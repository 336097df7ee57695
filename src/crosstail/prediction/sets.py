"""Prediction sets: classes that a sample may have, which contain the true one with the requested coverage."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from crosstail.pairs import pair_number

Per = Literal["all", "site", "class", "pair"]
FALLBACK: dict[Per, tuple[Per, ...]] = {
    "all": ("all",),
    "site": ("site", "all"),
    "class": ("class", "all"),
    "pair": ("pair", "class", "site", "all"),
}
"""Where the threshold of a pair comes from: the first group with enough samples."""
COVERAGE = 0.9
"""What reports show."""


def require_coverage(coverage: float) -> None:
    """Refuse a coverage outside (0, 1)."""
    if not 0 < coverage < 1:
        raise ValueError(f"--coverage is {coverage:g}, expected a share between 0 and 1, such as 0.9")


@dataclass(frozen=True)
class PredictionSets:
    """The least probability (D + 1, C) with which a class is in the set of a sample from a site; the last row is for
    samples of unknown site. `source` is the group that each comes from, as an index into `FALLBACK[per]`.

    Split conformal prediction with a threshold for each group (Vovk et al., 2005, chapter 4; "Mondrian"): with n
    calibration samples of a group, a class is in the set if its probability is among the ⌈(n + 1) coverage⌉ highest
    of these samples for their own class. If new samples of the group are exchangeable with them, the
    set contains the true class with at least this probability, whatever the model. A group that is too small for
    that uses the next larger one, whose coverage holds on average over the larger group only.

    The most probable class is always in the set.
    """

    least: NDArray[np.float64]
    source: NDArray[np.int64]
    coverage: float
    per: Per

    @classmethod
    def calibrated(
        cls,
        own: NDArray[np.floating],
        y: NDArray[np.int64],
        site: NDArray[np.int64],
        *,
        num_sites: int,
        num_classes: int,
        coverage: float = 0.9,
        per: Per = "pair",
    ) -> "PredictionSets":
        """From the probability of their class, the class and the site of samples that the model has not used."""
        require_coverage(coverage)
        shape = (num_sites + 1, num_classes)
        sites, classes = (index.ravel() for index in np.indices(shape))
        groups: dict[Per, tuple[NDArray[np.int64], NDArray[np.int64]]] = {  # of the samples, of the thresholds
            "all": (np.zeros_like(y), np.zeros_like(sites)),
            "site": (site, sites),
            "class": (y, classes),
            "pair": (pair_number(y, site, num_classes), pair_number(classes, sites, num_classes)),
        }
        least, source = np.full(sites.shape, np.nan), np.full(sites.shape, len(FALLBACK[per]))
        for level, name in enumerate(FALLBACK[per]):
            of_sample, of_threshold = groups[name]
            found = _order_statistics(own.astype(np.float64), of_sample, int(of_threshold.max()) + 1, coverage)
            better = np.isnan(least) & ~np.isnan(found[of_threshold])
            least[better], source[better] = found[of_threshold][better], level
        return cls(np.nan_to_num(least, nan=0.0).reshape(shape), source.reshape(shape), coverage, per)

    def members(self, probabilities: NDArray[np.floating], site: NDArray[np.int64] | int = -1) -> NDArray[np.bool_]:
        """Which classes are in the sets (N, C) of samples from these sites; −1 is an unknown one."""
        least = self.least.astype(probabilities.dtype)[np.broadcast_to(np.asarray(site), len(probabilities))]
        inside: NDArray[np.bool_] = probabilities >= least
        inside[np.arange(len(inside)), probabilities.argmax(1)] = True
        return inside


def _order_statistics(
    own: NDArray[np.float64], group: NDArray[np.int64], number: int, coverage: float
) -> NDArray[np.float64]:
    """For each group, the ⌈(n + 1) coverage⌉-th largest of its values; NaN if it has too few."""
    order = np.lexsort((-own, group))
    n = np.bincount(group, minlength=number)
    rank, found = _rank(n, coverage), np.full(number, np.nan)
    enough = rank <= n
    found[enough] = own[order[(np.cumsum(n) - n + rank - 1)[enough]]]
    return found


def _rank(n: NDArray[np.int64], coverage: float) -> NDArray[np.int64]:
    """⌈(n + 1) coverage⌉; the small number undoes rounding: 10 × 0.9 is 9."""
    return np.ceil((n + 1) * coverage - 1e-9).astype(np.int64)


def has_threshold(n: NDArray[np.int64], coverage: float) -> NDArray[np.bool_]:
    """Whether groups with so many samples are large enough for thresholds of their own.

    >>> has_threshold(np.array([8, 9]), 0.9).tolist()
    [False, True]
    """
    found: NDArray[np.bool_] = _rank(n, coverage) <= n
    return found
