"""What a method reaches by seed, from the records: accuracies, differences, and their intervals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from studies.paper_claims.design import DIVERGENT, DOMAINS, Cell, Study
from studies.paper_claims.records import Record

from crosstail.metrics import PairAccuracy, mean_interval
from crosstail.training.spec import split_method

Measure = Callable[[Record, int], float]  # of a run at the end of a stage


def on_test(record: Record, stage: int) -> PairAccuracy:
    """Hits and totals on test."""
    return PairAccuracy(np.array(record["stages"][stage - 1]["hits"]), np.array(record["totals"]))


def accuracy(record: Record, stage: int) -> float:
    """In percent: the mean over pairs, or the share of an unseen domain's samples that are right."""
    test, unseen = on_test(record, stage), record["spec"].get("unseen")
    if unseen is None:
        return 100 * float(test.pair_average or 0.0)
    row = DOMAINS.index(unseen)
    return 100 * float(test.hits[row].sum() / test.totals[row].sum())


def class_mean(record: Record, stage: int) -> float:
    """Mean over the classes of the unseen domain, in percent."""
    return 100 * float(np.nanmean(on_test(record, stage).matrix[DOMAINS.index(record["spec"]["unseen"])]))


def few_shot(record: Record, stage: int) -> float:
    """Mean over pairs with at most 20 training samples, in percent."""
    return 100 * float(on_test(record, stage).shots(record["counts"])["few"] or 0.0)


def worst_pair(record: Record, stage: int) -> float:
    """Test accuracy of the worst pair, in percent."""
    return 100 * float(on_test(record, stage).worst_pair or 0.0)


def over_gamma(name: str) -> Measure:
    """α or β in units of γ."""
    return lambda record, stage: float(record["transferability"][name] / record["transferability"]["gamma"])


def discrepancy(kind: str) -> Measure:
    """Distance of few-shot pairs' test features from training, of their own pair or of other domains, in units of γ."""
    return lambda record, stage: float(record["discrepancy"]["few"][kind] / record["transferability"]["gamma"])


def bound_gap(record: Record, stage: int) -> float:
    """How far the loss of all training samples is above its bound (theorem 1), in percent."""
    _, empirical, least = record["bound"][0]
    return float(100 * (empirical / least - 1))


@dataclass(frozen=True)
class Measured:
    """Values by seed, and the keys of the runs that are missing."""

    by_seed: dict[int, float]
    lacking: frozenset[str] = frozenset()

    def __sub__(self, other: "Measured") -> "Measured":
        common = sorted(self.by_seed.keys() & other.by_seed.keys())
        return Measured({s: self.by_seed[s] - other.by_seed[s] for s in common}, self.lacking | other.lacking)

    @property
    def values(self) -> list[float]:
        """Of all finished seeds."""
        return list(self.by_seed.values())

    @property
    def sign(self) -> int:
        """1 for a gain and -1 for a loss beyond the noise, else 0."""
        low, high = mean_interval(self.values)
        return int(low > 0) - int(high < 0)

    def missing(self) -> str:
        """How many runs are missing, or nothing."""
        return f"missing: {len(self.lacking)} runs" if self.lacking else ""

    def gain(self) -> str:
        """Mean and interval of a difference.

        >>> Measured({0: 1.0, 1: 2.0, 2: 3.0}).gain(), Measured({0: 2.0}, frozenset("ab")).gain()
        ('+2.0 (−0.5 to +4.5)', '+2.0 (seeds: 1; missing: 2 runs)')
        """
        if not self.by_seed:
            return self.missing()
        notes = [self.span()] if len(self.by_seed) > 1 else []
        notes += [f"seeds: {len(self.by_seed)}", self.missing()] if self.lacking else []
        return f"{minus(f'{np.mean(self.values):+.1f}')} ({'; '.join(notes)})"

    def span(self, form: str = "+.1f") -> str:
        """The interval, if there are at least two values."""
        ends = mean_interval(self.values) if len(self.by_seed) > 1 else ()
        return " to ".join(minus(f"{end:{form}}") for end in ends) or "–"

    def mean(self, form: str = ".1f") -> str:
        """Mean ± standard deviation, with the number of seeds while some are missing.

        >>> Measured({0: 1.0, 1: 2.0, 2: 3.0}).mean(), Measured({0: -1.0}, frozenset("a")).mean("+.1f")
        ('2.0 ± 1.0', '−1.0 (seeds: 1)')
        """
        if not self.by_seed:
            return "–"
        spread = f" ± {np.std(self.values, ddof=1):{form.removeprefix('+')}}" if len(self.by_seed) > 1 else ""
        seeds = f" (seeds: {len(self.by_seed)})" if self.lacking else ""
        return minus(f"{np.mean(self.values):{form}}{spread}{seeds}")


def minus(text: str) -> str:
    """With a minus sign instead of a hyphen."""
    return text.replace("-", "−")


def measured(
    study: Study,
    method: str,
    where: Sequence[str] = (DIVERGENT,),
    *,
    changed: tuple[tuple[str, float], ...] = (),
    seeds: int | None = None,
    measure: Measure = accuracy,
) -> Measured:
    """What a method such as `boda:retrain` reaches, as a mean over label configurations or unseen domains."""
    algorithm, second = split_method(method)
    stage = 2 if second else 1
    cells = [Cell(algorithm, place, changed) for place in where]
    finals = [study.finals(cell, stage, seeds) for cell in cells]
    found: dict[int, float] = {}
    for seed, runs in enumerate(zip(*finals, strict=True)):
        records = [study.records.runs.get(run.key, {}) if run else {} for run in runs]
        if all("stages" in record for record in records):
            found[seed] = float(np.mean([measure(record, stage) for record in records]))
    return Measured(found, frozenset().union(*(study.lacking(cell, stage, seeds) for cell in cells)))
