"""Draws from real seeds and test samples, compared by `compare_methods`: how often it is wrong, how often it sees.

What is known of a setting is taken for all there is: a draw takes seeds and, within each pair, test samples with
replacement (seeds of one method that stands for several without, which leaves the variance of differences as it is). So
the true accuracy of a method is its mean over all seeds and samples that are known.
"""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from studies.false_alarms.runs import REFERENCE, Records

from crosstail.metrics import Answered, Answers, Difference, PairAccuracy, compare_methods

SEEN = 1.4
"""(z₀.₉₇₅ + z₀.₈) / z₀.₉₇₅, of which the interval's half width is the denominator."""

Drawn = Mapping[str, Sequence[Answered]]


@dataclass(frozen=True)
class Pool:
    """The models of a setting, to draw from."""

    records: Records
    copies: int = 1  # of each sample that is drawn, in a group: as if all pictures of a patient were answered alike

    @cached_property
    def seeds(self) -> dict[str, list[int]]:
        """The seeds of each method."""
        found: dict[str, list[int]] = {}
        for method, seed in self.records.runs:
            found.setdefault(method, []).append(seed)
        return found

    @cached_property
    def correct(self) -> dict[str, NDArray[np.bool_]]:
        """Whether the model of each seed is right on each test sample, (S, N)."""
        return {m: np.stack([self.records.correct(m, seed) for seed in own]) for m, own in self.seeds.items()}

    @cached_property
    def truth_of(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Class and domain of each test sample."""
        return self.records.samples("y"), self.records.samples("domain")

    @cached_property
    def validation(self) -> dict[str, NDArray[np.float64]]:
        """The accuracy of each seed on validation."""
        runs = self.records.runs
        return {m: np.array([runs[m, seed]["validation"] for seed in own]) for m, own in self.seeds.items()}

    @cached_property
    def pairs(self) -> list[NDArray[np.int64]]:
        """The test samples of each pair."""
        y, domain = self.truth_of
        return [np.flatnonzero((domain == d) & (y == c)) for d, c in np.unique(np.stack([domain, y]), axis=1).T]

    @cached_property
    def averages(self) -> dict[str, NDArray[np.float64]]:
        """The pair average of each seed."""
        return {
            method: np.mean([correct[:, rows].mean(axis=1) for rows in self.pairs], axis=0)
            for method, correct in self.correct.items()
        }

    def truth(self, method: str) -> float:
        """The pair average over all seeds."""
        return float(self.averages[method].mean())

    def samples(self, rng: np.random.Generator) -> NDArray[np.int64]:
        """As many test samples as there are."""
        return np.concatenate([rng.choice(rows, len(rows)) for rows in self.pairs])

    def draw(self, rng: np.random.Generator, methods: Sequence[str], seeds: int) -> tuple[Drawn, list[float]]:
        """Models of each method, numbered in their order, for test samples of their own; and their mean validation.

        A method that stands for several is drawn without replacement, so that no seed is in two of them.
        """
        rows, found, validation = self.samples(rng), {}, []
        apart = {m: rng.permutation(len(self.seeds[m])) for m in methods if methods.count(m) > 1}
        for k, method in enumerate(methods):
            chosen = rng.integers(len(self.seeds[method]), size=seeds)
            if method in apart:
                chosen, apart[method] = np.split(apart[method], [seeds])
                assert len(chosen) == seeds, f"{method} has too few seeds"
            found[str(k)] = [Answered(i, self.answers(self.correct[method][s], rows)) for i, s in enumerate(chosen)]
            validation.append(float(self.validation[method][chosen].mean()))
        return found, validation

    def answers(self, correct: NDArray[np.bool_], rows: NDArray[np.int64]) -> Answers:
        """The answers of a model to test samples."""
        rows, truth = np.repeat(rows, self.copies), self.records.truth
        y, domain = (values[rows] for values in self.truth_of)
        group = None if self.copies == 1 else np.arange(len(rows)) // self.copies
        names = {"domains": truth["domains"], "classes": truth["classes"]}
        counts = np.ones((len(truth["domains"]), len(truth["classes"])), np.int64)
        return Answers(
            **names, counts=counts, y=y, domain=domain, predicted=np.where(correct[rows], y, -1), group=group
        )


def share(found: Sequence[bool]) -> float:
    """In %."""
    return 100 * float(np.mean(found))


def false_alarms(pool: Pool, seeds: int, draws: int, method: str = REFERENCE) -> tuple[float, float]:
    """How often a method differs from itself with other seeds, and how often the interval contains 0, in %."""
    rng, wrong, covered = np.random.default_rng(0), [], []
    for _ in range(draws):
        found = _only(compare_methods(pool.draw(rng, [method] * 2, seeds)[0], "0", "pair_average"))
        wrong.append(found.sure)
        covered.append(found.low <= 0 <= found.high)
    return share(wrong), share(covered)


def any_false_alarm(pool: Pool, methods: int, seeds: int, draws: int) -> float:
    """How often at least one of several equal methods is said to differ from the best on validation, in %."""
    rng, wrong = np.random.default_rng(0), []
    for _ in range(draws):
        drawn, validation = pool.draw(rng, [REFERENCE] * methods, seeds)
        found = compare_methods(drawn, str(int(np.argmax(validation))), "pair_average")
        wrong.append(any(test is not None and test.sure for test in found.values()))
    return share(wrong)


@dataclass(frozen=True)
class Power:
    """How two methods that differ are compared."""

    method: str
    truth: float  # their difference in points
    seen: float  # how often they differ significantly, in the right direction, in %
    welch: float  # the same by Welch's test over seeds, which is wrong more often
    covered: float  # how often the interval contains the true difference, in %
    welch_covered: float


def power(pool: Pool, method: str, seeds: int, draws: int) -> Power:
    """A method against the reference."""
    rng, truth = np.random.default_rng(0), pool.truth(method) - pool.truth(REFERENCE)
    seen, welch, covered, welch_covered = [], [], [], []
    for _ in range(draws):
        drawn, _ = pool.draw(rng, [REFERENCE, method], seeds)
        found = _only(compare_methods(drawn, "0", "pair_average"))
        seen.append(found.sure and found.estimate * truth > 0)
        covered.append(found.low <= truth <= found.high)
        own, base = ([one.answers.value().pair_average for one in drawn[name]] for name in ("1", "0"))
        with warnings.catch_warnings(action="ignore"):  # the same seed may be drawn each time
            test = stats.ttest_ind(own, base, equal_var=False)
        welch.append(test.pvalue < 0.05 and test.statistic * truth > 0)
        low, high = test.confidence_interval()
        welch_covered.append(low <= truth <= high)
    return Power(method, 100 * truth, *map(share, (seen, welch, covered, welch_covered)))


def coverage(pool: Pool, draws: int) -> tuple[float, float]:
    """How often the intervals of one model, and of the mean over three, contain their accuracy on all samples, in %."""
    rng, one, three = np.random.default_rng(0), [], []
    methods = list(pool.seeds)
    for _ in range(draws):
        rows, method = pool.samples(rng), methods[rng.integers(len(methods))]
        chosen = rng.choice(len(pool.seeds[method]), 3, replace=False)
        values = [pool.answers(pool.correct[method][s], rows).value() for s in chosen]
        for found, own in ((one, values[:1]), (three, values)):
            low, high = PairAccuracy.mean_interval(own, "pair_average") or (0.0, 1.0)
            found.append(low <= pool.averages[method][chosen[: len(own)]].mean() <= high)
    return share(one), share(three)


def detectable(pool: Pool, method: str, seeds: int, draws: int = 50) -> float:
    """About the difference from the reference, in points, that four of five tests see: 1.4 half widths of intervals."""
    rng, halves = np.random.default_rng(0), []
    for _ in range(draws):
        found = _only(compare_methods(pool.draw(rng, [REFERENCE, method], seeds)[0], "0", "pair_average"))
        halves.append((found.high - found.low) / 2)
    return 100 * float(np.median(halves)) * SEEN


def _only(tests: Mapping[str, Difference | None]) -> Difference:
    (found,) = tests.values()
    assert found is not None
    return found
