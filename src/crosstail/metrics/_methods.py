"""Do methods differ by more than noise? One answer for reports, races and two runs.

Two statements are possible. *These models*: the difference between the models at hand on other test samples; the only
one with a single seed. *The methods, trained again*: also with other seeds. Both are by the balanced two-way model of
seeds and test samples in its ANOVA form. With seed deviations s_a and s_b of n_a and n_b models,

    se² = s_a² / n_a + s_b² / n_b + max(0, V_samples − V_seed×sample),

where V_samples is the variance of the difference between the mean models over test samples, and V_seed×sample is the
part of it that is due to seeds, which s_a and s_b contain already. Satterthwaite's degrees of freedom give the interval
and the p-value by the same t distribution, so they cannot contradict each other. docs/intervals.md says it to users.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import DEFAULT, find
from crosstail.metrics._values import SampleValues, sampling_variance
from crosstail.metrics._views import View

Floats = NDArray[np.float64]
LEVEL = 0.05


@dataclass(frozen=True)
class Difference:
    """A difference between two methods, its 95 % interval, and a two-sided p-value."""

    estimate: float
    low: float
    high: float
    p_value: float
    retrained: bool = False  # about the methods, trained again with other seeds; else about these models
    adjusted: float | None = None  # p-value corrected for the number of methods
    same: bool = False  # with every seed, the models are right on the same samples

    def __neg__(self) -> "Difference":
        """The other one minus this one."""
        return replace(self, estimate=-self.estimate, low=-self.high, high=-self.low)

    @property
    def sure(self) -> bool:
        """Whether it is significant, after the correction if there is one."""
        return (self.p_value if self.adjusted is None else self.adjusted) < LEVEL


class Seed(Protocol):
    """What a method got with one seed."""

    @property
    def seed(self) -> int: ...

    @property
    def sampled(self) -> SampleValues | None:
        """The metric as computed from each test sample; None if the answers are not stored."""


@dataclass(frozen=True)
class Answered:
    """The answers of a model of one seed, compared by a metric."""

    seed: int
    answers: Answers
    metric: str = DEFAULT

    @property
    def sampled(self) -> SampleValues:
        return find(self.metric).sampled(self.answers)


@dataclass(frozen=True, eq=False)
class Models:
    """All that a comparison needs of several models of a method on the same test samples."""

    values: Floats  # (S,)
    influence: Floats  # (N,), of each sample on the mean over the models
    within: float  # mean over the models of the variance over samples
    samples: NDArray[np.int64]  # (3, N): row in the data, class, domain
    group: NDArray[np.int64] | None
    given: tuple[int, ...] = ()  # hashes of the influences by model, which tell whether others are the same

    @classmethod
    def of(cls, runs: Iterable[SampleValues | None], of: View) -> "Models | None":
        """From models of several seeds, read one at a time; None unless all are of the same test samples."""
        values, variances, given, influences, first = [], [], list[int](), list[Floats](), None
        for run in runs:
            if run is None or (first is not None and not np.array_equal(run.samples, first.samples)):
                return None
            first, influence = first or run, run.influence[ROWS[of]]
            values.append(getattr(run, of) or 0.0)
            variances.append(sampling_variance(influence, run.group)[0])
            influences = [np.sum([*influences, influence], axis=0)]
            given.append(hash(influence.tobytes()))
        if first is None:
            return None
        mean, within = influences[0] / len(values), float(np.mean(variances))
        return cls(np.array(values), mean, within, first.samples, first.group, tuple(given))

    @classmethod
    def paired(cls, pairs: Iterable[tuple[SampleValues | None, SampleValues | None]], of: View) -> "Models | None":
        """Differences between two models each, where every seed has test samples of its own, as with dg.

        Samples that a seed is not tested on have no influence on it.
        """
        found = []
        for first, second in pairs:
            if first is None or second is None or not np.array_equal(first.samples, second.samples):
                return None
            value = (getattr(first, of) or 0.0) - (getattr(second, of) or 0.0)
            found.append((value, first, first.influence[ROWS[of]] - second.influence[ROWS[of]]))
        if not found:
            return None
        rows, place = np.unique(np.concatenate([one.samples[0] for _, one, _ in found]), return_inverse=True)
        ends = np.cumsum([len(influence) for *_, influence in found])
        influences, samples = np.zeros((len(found), len(rows))), np.zeros((3, len(rows)), np.int64)
        group = None if found[0][1].group is None else np.zeros(len(rows), np.int64)
        for (_, one, influence), own, at in zip(found, influences, np.split(place, ends[:-1]), strict=True):
            own[at], samples[:, at] = influence, one.samples
            if group is not None and one.group is not None:
                group[at] = one.group
        within = float(np.mean([sampling_variance(own, group)[0] for own in influences]))
        return cls(np.array([value for value, *_ in found]), influences.mean(axis=0), within, samples, group)

    @property
    def of_seeds(self) -> float:
        """Variance of the mean over models that is due to their seeds, s² / n."""
        return float(self.values.var(ddof=1) / len(self.values))

    @property
    def of_both(self) -> float:
        """Variance of the mean over models that is due to seeds that change the answers to some samples only."""
        return max(0.0, self.within - sampling_variance(self.influence, self.group)[0]) / (len(self.values) - 1)


ROWS = {"pair_average": 0, "average": 1}


def difference(first: Models, second: Models | None = None) -> Difference | None:
    """The difference between two methods, or of paired differences from 0; None of other samples, or without variance.

    With two seeds or more of both, it is about the methods, trained again.
    """
    sides = [first] if second is None else [first, second]
    if second is not None and not np.array_equal(first.samples, second.samples):
        return None
    estimate = float(first.values.mean() - (0.0 if second is None else second.values.mean()))
    influence = first.influence - (0.0 if second is None else second.influence)
    variance, free = sampling_variance(influence, first.group)
    parts, retrained = [(variance, free)], min(len(side.values) for side in sides) > 1
    if retrained:
        rest = max(0.0, variance - sum(side.of_both for side in sides))
        parts = [(rest, free), *((side.of_seeds, len(side.values) - 1) for side in sides)]
    squared = sum(part for part, _ in parts)
    same = second is not None and first.given == second.given != ()
    if squared <= 0:
        return Difference(0.0, 0.0, 0.0, 1.0, retrained, same=same) if abs(estimate) < 1e-12 else None
    from scipy.special import stdtr, stdtrit  # here, because most commands do not need it

    error, freedom = squared**0.5, squared**2 / sum(part**2 / of for part, of in parts)
    reach = float(stdtrit(freedom, 1 - LEVEL / 2)) * error
    p = 2 * float(stdtr(freedom, -abs(estimate) / error))
    return Difference(estimate, estimate - reach, estimate + reach, p, retrained, same=same)


def compare_methods(
    methods: Mapping[str, Sequence[Seed]], against: str, of: View, *, paired: bool = False
) -> dict[str, Difference | None]:
    """The difference of every other method from the one that it is `against`; None where there is no test.

    P-values are adjusted for the number of methods by Holm's method. `paired` is for methods whose seeds have other
    test samples each: it compares seed by seed, on the seeds that both have.
    """
    others = [method for method in methods if method != against]
    if paired:
        by_seed = {one.seed: one for one in methods[against]}
        pairs = {m: [(one, by_seed[one.seed]) for one in methods[m] if one.seed in by_seed] for m in others}
        found = {m: Models.paired(((one.sampled, other.sampled) for one, other in own), of) for m, own in pairs.items()}
        tests = {method: difference(models) if models else None for method, models in found.items()}
    else:
        base = Models.of((one.sampled for one in methods[against]), of)
        sides = {method: base and Models.of((one.sampled for one in methods[method]), of) for method in others}
        tests = {method: difference(models, base) if models and base else None for method, models in sides.items()}
    adjusted = holm([test.p_value if test else np.nan for test in tests.values()]).tolist()
    return {m: test and replace(test, adjusted=p) for (m, test), p in zip(tests.items(), adjusted, strict=True)}


def holm(p_values: ArrayLike) -> Floats:
    """P-values adjusted for their number, so that any is falsely below a level with at most that chance (Holm, 1979).

    Of m p-values in ascending order, the adjusted ones are p̃_i = max_{j ≤ i} min(1, (m − j + 1) p_j). NaN stands for no
    test and does not count.
    """
    p = np.asarray(p_values, float)
    adjusted, tested = np.full(p.shape, np.nan), np.flatnonzero(~np.isnan(p))
    order = tested[np.argsort(p[tested], kind="stable")]
    adjusted[order] = np.maximum.accumulate(np.minimum(1, p[order] * np.arange(len(order), 0, -1)))
    return adjusted
