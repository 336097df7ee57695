"""The paper's gains, ours with their intervals, and what the one says of the other."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats
from studies.paper_claims.design import CONFIGURATIONS, DIVERGENT, Cell

from crosstail.training.spec import split_method

Values = list[float]
ALL = tuple(CONFIGURATIONS)
BODA, BOTH = "BoDA_{r,c}", "BoDA_{r,c} + CORAL"  # the paper's names of boda:retrain and boda+coral:retrain


def interval(values: Values) -> tuple[float, float]:
    """Student's 95 % interval of the mean.

    >>> [round(end, 2) for end in interval([1.0, 2.0, 3.0])]
    [-0.48, 4.48]
    """
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else math.inf
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def verdict(values: Values, paper: float) -> str:
    """What the interval of a gain says of the paper's gain; 0 where the paper has no number.

    >>> verdict([2.9, 3.0, 3.1], 3.0), verdict([0.9, 1.0, 1.1], 3.0), verdict([-1.0, 0.0, 1.0], 9.0)
    ('reproduced', 'partly: a gain, but smaller', 'not: no gain beyond the noise')
    """
    low, high = interval(values)
    if low > 0:
        return "reproduced" if high >= paper else "partly: a gain, but smaller"
    if high < 0:
        return "not: a loss"
    if not paper:
        return "not shown: no gain beyond the noise"
    return "not shown: too noisy to tell" if high >= paper else "not: no gain beyond the noise"


@dataclass(frozen=True)
class Gain:
    """Values by seed, of a method or of a difference, and the number of runs that are missing."""

    values: Values
    missing: int = 0

    def __str__(self) -> str:
        """Mean and interval.

        >>> print(Gain([1.0, 2.0, 3.0])), print(Gain([2.0], missing=3))
        +2.0 (−0.5 to +4.5)
        missing: 3 runs
        (None, None)
        """
        if len(self.values) < 2:
            return f"missing: {self.missing} runs"
        low, high = interval(self.values)
        text = f"{np.mean(self.values):+.1f} ({low:+.1f} to {high:+.1f}"
        return text.replace("-", "−") + (
            f"; {len(self.values)} seeds, missing: {self.missing} runs)" if self.missing else ")"
        )

    @property
    def sign(self) -> int:
        """1 for a gain and -1 for a loss beyond the noise, else 0; also 0 while runs are missing."""
        if self.missing:
            return 0
        low, high = interval(self.values)
        return int(low > 0) - int(high < 0)


def methods_of(method: str, where: Sequence[str] = (DIVERGENT,)) -> list[tuple[Cell, int]]:
    """The cells and the stage that a method's results come from."""
    algorithm, stage = split_method(method)
    return [(Cell(algorithm, place), 2 if stage else 1) for place in where]
