"""A metric of every pair and domain, whatever it is computed from, and the machinery of metrics of samples.

The influence of a sample is by how much a metric changes per unit of its weight. A metric varies with the test samples
as the sum of their influences does, so that one pass over the samples shows how certain it is, and, from the
differences between the influences of two models, how certain the difference between them is: first-order standard
errors (the infinitesimal jackknife).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.metrics._views import View, Weighting, cells, pair_weights

if TYPE_CHECKING:
    from crosstail.metrics._answers import Answers

Floats: TypeAlias = NDArray[np.float64]
SHOTS = ("many", "medium", "few", "zero")
FEW_TESTS = 10
"""With fewer test samples, the accuracy of a pair is mostly chance."""
Z = 1.96  # of a 95 % interval


def shot_group(counts: ArrayLike, many: int = 100, few: int = 20) -> NDArray[np.str_]:
    """Shot group of each pair by its training count n.

    many: n > `many`; medium: `few` < n <= `many`; few: 1 <= n <= `few`; zero: n = 0. With the defaults, a pair with
    exactly 100 training samples is medium and one with exactly 20 is few.

    >>> shot_group([[101, 100, 21], [20, 1, 0]]).tolist()
    [['many', 'medium', 'medium'], ['few', 'few', 'zero']]
    """
    if few > many:
        raise ValueError(f"few is {few} and many is {many}, expected few <= many")
    n = np.asarray(counts)
    return np.select([n == 0, n > many, n > few], ["zero", "many", "medium"], "few")


class PairValues(ABC):
    """A metric of every pair and domain. Pairs without test samples are excluded from every mean and minimum."""

    totals: NDArray[np.int64]  # (D, C), test samples
    weights: Floats | None = None  # (D, C), of the pairs in averages; None: as a metric without weights says
    higher_is_better: bool = True

    @property
    @abstractmethod
    def matrix(self) -> Floats:
        """The metric of every pair (D, C); NaN where it is undefined."""

    @property
    @abstractmethod
    def domains(self) -> list[float | None]:
        """The metric of every domain."""

    @abstractmethod
    def interval(self, of: View | int | tuple[int, int] = "pair_average") -> tuple[float, float] | None:
        """The 95 % interval of a view, of domain `of=d`, or of pair `of=(d, c)`; None where there is none."""

    @classmethod
    @abstractmethod
    def mean_interval(cls, runs: Sequence["PairValues"], of: View | Weighting) -> tuple[float, float] | None:
        """The 95 % interval of an average over pairs or domains that is averaged over runs on the same test samples.

        It reflects the sampling of test samples. All `runs` are of the class itself.
        """

    @property
    def average(self) -> float | None:
        """Mean over domains."""
        known = [value for value in self.domains if value is not None]
        return float(np.mean(known)) if known else None

    @property
    def worst_domain(self) -> float | None:
        """The worst value of any domain."""
        known = [value for value in self.domains if value is not None]
        return (min if self.higher_is_better else max)(known, default=None)

    @property
    def pair_average(self) -> float | None:
        """Mean over pairs, by their weights if they have some."""
        known = self._defined
        if self.weights is None or not len(known):
            return float(known.mean()) if len(known) else None
        return float(np.average(known, weights=self.weights[~np.isnan(self.matrix)]))

    @property
    def worst_pair(self) -> float | None:
        """The worst value of any pair."""
        known = self._defined
        return float(known.min() if self.higher_is_better else known.max()) if len(known) else None

    @property
    def worst_pair_index(self) -> tuple[int, int] | None:
        """The pair (d, c) with the worst value; on ties the one with most test samples, then the first."""
        worst_first = self.matrix.ravel() * (1 if self.higher_is_better else -1)
        if np.isnan(worst_first).all():
            return None
        first = np.lexsort((-self.totals.ravel(), worst_first))[0]  # NaN comes last
        d, c = np.unravel_index(first, self.totals.shape)
        return int(d), int(c)

    @property
    def worst_pair_tests(self) -> int:
        """Test samples of the worst pair; 0 without any."""
        return int(self.totals[self.worst_pair_index]) if self.worst_pair_index else 0

    @property
    def tail(self) -> float | None:
        """The worst tenth of the pairs begins here: 10th percentile over pairs, or 90th where lower is better."""
        known = self._defined
        return float(np.quantile(known, 0.1 if self.higher_is_better else 0.9)) if len(known) else None

    @property
    def barely_tested(self) -> int:
        """Number of pairs with test samples, but fewer than `FEW_TESTS`."""
        return int(((self.totals > 0) & (self.totals < FEW_TESTS)).sum())

    def shots(self, counts: ArrayLike, many: int = 100, few: int = 20) -> dict[str, float | None]:
        """Mean over many-, medium-, few- and zero-shot pairs, grouped by training counts (D, C).

        For the thresholds see `shot_group`.
        """
        group, matrix = shot_group(counts, many, few), self.matrix
        if group.shape != self.totals.shape:
            raise ValueError(f"counts has shape {group.shape}, expected {self.totals.shape} as the test totals")
        members = {shot: matrix[(group == shot) & ~np.isnan(matrix)] for shot in SHOTS}
        return {shot: float(values.mean()) if len(values) else None for shot, values in members.items()}

    @property
    def _defined(self) -> Floats:
        matrix = self.matrix
        return matrix[~np.isnan(matrix)]


@dataclass(frozen=True, eq=False)
class SampleValues(PairValues):
    """A metric that is computed from samples, with the influence of each on its averages."""

    totals: NDArray[np.int64]  # (D, C)
    pairs: Floats  # (D, C); NaN without samples, for AUROC also without other classes
    of_domains: Floats  # (D,)
    errors: Floats  # (D, C): standard errors of the pairs, if samples are independent
    influence: Floats  # (2, N), of each sample on the mean over pairs and on that over domains
    samples: NDArray[np.int64]  # (3, N): row in the data, class, domain
    group: NDArray[np.int64] | None  # (N,)
    weights: Floats | None = None  # (D, C)
    higher_is_better: bool = True
    most: float = 1.0

    @property
    def matrix(self) -> Floats:
        return self.pairs

    @property
    def domains(self) -> list[float | None]:
        return [None if np.isnan(value) else float(value) for value in self.of_domains]

    def error(self, of: View | Weighting) -> float | None:
        """Standard error of one of the two averages; None for another view."""
        row = {"pair_average": 0, "average": 1}.get(of)
        return None if row is None else sampling_variance(self.influence[row], self.group)[0] ** 0.5

    def interval(self, of: View | int | tuple[int, int] = "pair_average") -> tuple[float, float] | None:
        return self.mean_interval([self], of) if isinstance(of, str) else None

    @classmethod
    def mean_interval(cls, runs: Sequence[PairValues], of: View | Weighting) -> tuple[float, float] | None:
        """1.96 times their mean standard error to both sides of their mean."""
        own = [run for run in runs if isinstance(run, SampleValues)]
        known = [
            (value, e)
            for run in own
            if (value := getattr(run, of, None)) is not None and (e := run.error(of)) is not None
        ]
        if not known:
            return None
        centre, error = np.mean(known, axis=0)
        low, high = np.clip([centre - Z * error, centre + Z * error], 0, own[0].most)
        return float(low), float(high)


class Computed(NamedTuple):
    """A metric of groups of samples, such as pairs or domains."""

    values: Floats  # (G,), NaN where it is undefined
    errors: Floats  # (G,), standard errors if samples are independent: √ Σ influence²
    influence: Floats  # (N,), of each sample, summed over the groups


def by_sample(each: "Callable[[Answers], Floats]") -> "Callable[[Answers], SampleValues]":
    """A metric that is a mean over samples, of a domain as of a pair; `each` gives its values (N,)."""

    def of(answers: "Answers") -> SampleValues:
        computed = means(each(answers), answers.pair, answers.counts.size, answers.group)
        return aggregated(answers, computed, _totals(answers))

    return of


def by_class(computed: "Callable[[Answers], Computed]") -> "Callable[[Answers], SampleValues]":
    """A metric of a class among the samples of a domain, which is a pair; a domain has the mean over its classes."""

    def of(answers: "Answers") -> SampleValues:
        found = computed(answers)
        return aggregated(answers, found, (~np.isnan(found[0])).reshape(answers.counts.shape))

    return of


def by_group(
    computed: "Callable[[Answers, NDArray[np.int64], int], Computed]",
) -> "Callable[[Answers], SampleValues]":
    """A metric of any group of samples, given the group of each (N,) and their number: of pairs, and of domains."""

    def of(answers: "Answers") -> SampleValues:
        in_pairs = computed(answers, answers.pair, answers.counts.size)
        return aggregated(answers, in_pairs, _totals(answers), computed(answers, answers.domain, len(answers.domains)))

    return of


def means(values: Floats, group: NDArray[np.int64], groups: int, together: NDArray[np.int64] | None = None) -> Computed:
    """The mean of each group, and (v − centre) / n, made larger by √(k / (k − 1)) as the centre is of the same values.

    k is the number of samples, or of units of samples that depend on each other, which have the same number in
    `together`. The centre is the mean of the group and, with the weight of one unit, of all groups: two samples that
    are alike by chance would not vary. Groups of a single unit are taken as one, around their mean.
    """
    totals, nothing = np.bincount(group, minlength=groups), np.full(groups, np.nan)
    found = np.divide(np.bincount(group, values, minlength=groups), totals, where=totals > 0, out=nothing)
    cell, of = cells(group, together)
    units = np.bincount(of, minlength=groups)
    single, overall = units == 1, float(np.nanmean(found)) if len(values) else 0.0
    centre = found + (overall - found) / (units + 1)
    centre[single] = found[single].mean() if single.sum() > 1 else overall
    units = np.where(single, single.sum(), units)[group]
    influence = (values - centre[group]) / totals[group] * np.sqrt(units / (units - 1).clip(1))
    errors = np.where(single, np.nan, root_sum(np.bincount(cell, influence).astype(float), of, groups))
    return Computed(found, errors, influence)


def root_sum(influence: Floats, group: NDArray[np.int64], groups: int) -> Floats:
    """√ Σ influence² of the samples of each group."""
    return np.sqrt(np.bincount(group, influence**2, minlength=groups))


def _totals(answers: "Answers") -> NDArray[np.int64]:
    return np.bincount(answers.pair, minlength=answers.counts.size).reshape(answers.counts.shape)


def aggregated(
    answers: "Answers",
    of_pairs: Computed,
    weights: NDArray[Any],
    of_domains: Computed | None = None,
    overall: Floats | None = None,  # (D, C), weights of the mean over pairs
) -> SampleValues:
    """Averages over pairs and domains; a domain's metric is the mean of its pairs by `weights` (D, C) unless given."""
    pairs, domain = of_pairs.values.reshape(answers.counts.shape), answers.domain
    defined = ~np.isnan(pairs)
    if of_domains is None:
        shares = pair_weights(weights, "average") if defined.any() else np.zeros(pairs.shape)
        share = shares.sum(axis=1)
        mean = np.divide(
            (shares * np.nan_to_num(pairs)).sum(axis=1), share, where=share > 0, out=np.full(len(share), np.nan)
        )
        # Of the pair of the sample, if only that is influenced; all classes of a domain have the same share.
        of_domains = Computed(mean, mean, of_pairs.influence * shares.ravel()[answers.pair])
    else:
        number = max(int((~np.isnan(of_domains.values)).sum()), 1)
        of_domains = of_domains._replace(influence=of_domains.influence / number)
    share = 1 / max(defined.sum(), 1) if overall is None else overall.ravel()[answers.pair] / overall[defined].sum()
    influence = np.stack([of_pairs.influence * share, of_domains.influence])
    rows = np.arange(len(answers)) if answers.row is None else answers.row
    return SampleValues(
        totals=_totals(answers),
        pairs=pairs,
        of_domains=of_domains.values,
        errors=np.where(defined, of_pairs.errors.reshape(pairs.shape), np.nan),
        influence=influence,
        samples=np.stack([rows, answers.y, domain]),
        group=answers.group,
        weights=overall,
    )


def sampling_variance(influence: Floats, group: NDArray[np.int64] | None = None) -> tuple[float, float]:
    """Variance over test samples from the influence (N,) of each, summed within groups, and its degrees of freedom.

    If k samples count and the others do not, these are k: with few of them, Student's distribution is close to an
    exact sign test.
    """
    squares = (influence if group is None else np.bincount(np.unique(group, return_inverse=True)[1], influence)) ** 2
    variance = float(squares.sum())
    return variance, variance**2 / float((squares**2).sum()) if variance > 0 else 1.0
