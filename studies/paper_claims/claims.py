"""The paper's gains, ours with their intervals, and what the one says of the other."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from scipy import stats
from studies.paper_claims.design import CONFIGURATIONS, DIVERGENT, DOMAINS, UNIFORM, Cell, Study

from crosstail.training.spec import split_method

Values = list[float]
Measure = Callable[[Study, Cell, str, int], float]
STRONG = 0.8  # r from which we call a correlation very strong
BALANCED = 90.5  # percent: the paper's ERM with balanced labels
TIGHT = 100 * (2.92947 / 2.92513 - 1)  # percent: the paper's gap between loss and bound


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

        >>> str(Gain([1.0, 2.0, 3.0])), str(Gain([2.0], missing=3)), str(Gain([], missing=7))
        ('+2.0 (−0.5 to +4.5)', '+2.0 (seeds: 1; missing: 3 runs)', 'missing: 7 runs')
        """
        notes = []
        if len(self.values) > 1:
            notes.append(" to ".join(minus(f"{end:+.1f}") for end in interval(self.values)))
        if self.missing:
            notes += [f"seeds: {len(self.values)}"] * bool(self.values) + [f"missing: {self.missing} runs"]
        if not self.values:
            return notes[0]
        return minus(f"{np.mean(self.values):+.1f} (") + f"{'; '.join(notes)})"

    @property
    def sign(self) -> int:
        """1 for a gain and -1 for a loss beyond the noise, else 0; also 0 while runs are missing."""
        if self.missing:
            return 0
        low, high = interval(self.values)
        return int(low > 0) - int(high < 0)


@dataclass(frozen=True)
class Level:
    """What a method reaches, by seed, and the runs that are missing."""

    by_seed: dict[int, float]
    lacking: set[str] = field(default_factory=set)

    def __sub__(self, other: "Level") -> Gain:
        common = self.by_seed.keys() & other.by_seed.keys()
        values = [self.by_seed[seed] - other.by_seed[seed] for seed in sorted(common)]
        return Gain(values, len(self.lacking | other.lacking))

    @property
    def gain(self) -> Gain:
        """The values themselves."""
        return Gain(list(self.by_seed.values()), len(self.lacking))


def accuracy(study: Study, cell: Cell, key: str, stage: int) -> float:
    """Test accuracy in percent: the mean over pairs, or the share of the unseen domain's samples that are right."""
    test = study.records.test(key, stage)
    if study.setting.photos:
        unseen = DOMAINS.index(cell.where)
        return 100 * float(test.hits[unseen].sum() / test.totals[unseen].sum())
    return 100 * float(test.pair_average or 0.0)


def class_mean(study: Study, cell: Cell, key: str, stage: int) -> float:
    """Mean over the classes of the unseen domain, in percent."""
    return 100 * float(np.nanmean(study.records.test(key, stage).matrix[DOMAINS.index(cell.where)]))


def few_shot(study: Study, cell: Cell, key: str, stage: int) -> float:
    """Mean over pairs with at most 20 training samples, in percent."""
    few = study.records.test(key, stage).shots(study.records.runs[key]["counts"])["few"]
    return math.nan if few is None else 100 * few


def worst_pair(study: Study, cell: Cell, key: str, stage: int) -> float:
    """Test accuracy of the worst pair, in percent."""
    return 100 * float(study.records.test(key, stage).worst_pair or 0.0)


def discrepancy(study: Study, cell: Cell, key: str, stage: int) -> float:
    """Distance of the test features of few-shot pairs from their training features, in percent of γ."""
    record = study.records.runs[key]
    return float(100 * record["discrepancy"]["few"]["mean"] / record["transferability"]["gamma"])


def bound_gap(study: Study, cell: Cell, key: str, stage: int) -> float:
    """How far the loss of all training samples is above its bound (theorem 1), in percent."""
    (_, empirical, least), *_ = study.records.runs[key]["bound"]
    return float(100 * (empirical / least - 1))


def level(
    study: Study,
    method: str,
    where: Sequence[str] = (DIVERGENT,),
    *,
    changed: tuple[tuple[str, float], ...] = (),
    seeds: int | None = None,
    measure: Measure = accuracy,
) -> Level:
    """What a method such as `boda:retrain` reaches, as a mean over label configurations or unseen domains."""
    algorithm, second = split_method(method)
    stage = 2 if second else 1
    cells = [Cell(algorithm, place, changed) for place in where]
    done = [study.done(cell, stage, seeds) for cell in cells]
    common = set.intersection(*(set(keys) for keys in done))
    values = {
        seed: float(np.mean([measure(study, cell, keys[seed], stage) for cell, keys in zip(cells, done, strict=True)]))
        for seed in sorted(common)
    }
    return Level(values, set().union(*(study.lacking(cell, stage, seeds) for cell in cells)))


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we have, and how the one is judged by the other."""

    text: str
    paper: str
    ours: Gain
    judge: Callable[[Values], str]
    form: str = "+.1f"

    def row(self, study: Study) -> list[str]:
        """As a row of the table of claims."""
        said = f"missing: {self.ours.missing} runs" if self.ours.missing else self.judge(self.ours.values)
        return [self.text, study.setting.title, self.paper, *cells(self.ours, self.form), said]


def claims(study: Study) -> list[Claim]:
    """The gains of a setting; a star marks what the paper measured on five other data sets."""

    def gained(text: str, paper: float, gain: Gain) -> Claim:
        return Claim(text, f"{paper:+.1f}" if paper else "a gain", gain, lambda values: verdict(values, paper))

    if study.setting.photos:
        erm, coral = (level(study, name, DOMAINS) for name in ("erm", "coral"))
        boda, both = (level(study, f"{name}:retrain", DOMAINS) for name in ("boda", "boda+coral"))
        return [
            gained("BoDA_{r,c} over ERM *", 2.2, boda - erm),
            gained("BoDA_{r,c} over CORAL *", 1.0, boda - coral),
            gained("BoDA_{r,c} + CORAL over ERM *", 2.9, both - erm),
        ]
    everywhere = tuple(CONFIGURATIONS)
    erm, crt, boda = (level(study, name) for name in ("erm", "erm:retrain", "boda:retrain"))
    mean = level(study, "boda:retrain", everywhere) - level(study, "erm", everywhere)
    nu = [level(study, "boda:retrain", changed=changed, seeds=3) for changed in ((), (("nu", 0.0),))]
    second = {name: level(study, f"{name}:retrain") - level(study, name) for name in ("dann", "coral")}
    far, near = (level(study, name, measure=discrepancy) for name in ("erm", "boda"))
    balanced = level(study, "erm", (UNIFORM,)).gain
    gap = level(study, "boda", (UNIFORM,), measure=bound_gap).gain
    return [
        gained("BoDA_{r,c} over ERM, divergent labels", 9.5, boda - erm),
        gained("BoDA_{r,c} over ERM, mean of five configurations", 6.4, mean),
        gained("BoDA_{r,c} over CRT, divergent labels", 0.0, boda - crt),
        gained("BoDA_{r,c} over DA with a second stage *", 2.3, boda - level(study, "da:retrain")),
        gained("BoDA_{r,c}: ν = 1 over ν = 0 *", 1.2, nu[0] - nu[1]),
        gained("a second stage for ERM *", 1.6, crt - erm),
        gained("a second stage for DANN *", 1.3, second["dann"]),
        gained("a second stage for CORAL *", 1.6, second["coral"]),
        gained("ERM: identical over divergent long tails", 0.0, level(study, "erm", ("forward–forward",)) - erm),
        gained("feature discrepancy of few-shot pairs, ERM over BoDA_r, % of γ", 0.0, far - near),
        Claim("ERM when balanced, %", f"{BALANCED}", balanced, reached, ".1f"),
        Claim("loss above its bound, balanced labels, %", f"{TIGHT:.2f}", gap, tight, ".2f"),
        correlation_claim(study),
    ]


def reached(values: Values) -> str:
    """Whether an interval contains the paper's accuracy."""
    low, high = interval(values)
    return "reproduced" if low <= BALANCED <= high else "not: lower" if high < BALANCED else "not: higher"


def tight(values: Values) -> str:
    """Whether a gap may be as small as the paper's."""
    return "reproduced" if interval(values)[0] <= TIGHT else "not: looser"


def correlation_claim(study: Study) -> Claim:
    """Whether (β + γ) − α goes along with accuracy in every configuration: r by configuration."""
    found = correlation_table(study)
    runs = [run for where in CONFIGURATIONS for run in study.models(where)]
    lacking = [run for run in runs if run.key not in study.records]

    def judge(values: Values) -> str:
        if found["low"].min() <= 0:
            return "not: not in every configuration"
        return "reproduced" if min(values) >= STRONG else "partly: not strong everywhere"

    text = "r of (β + γ) − α and accuracy, mean of five configurations"
    return Claim(text, "“very strong”", Gain(list(found["r"]), len(lacking)), judge, "+.2f")


def cells(gain: Gain, form: str = "+.1f") -> list[str]:
    """Mean ± standard deviation, and interval, as cells of a table."""
    if len(gain.values) < 2:
        return ["–", "–"]
    return [mean_sd(gain.values, form), " to ".join(minus(f"{end:{form}}") for end in interval(gain.values))]


def mean_sd(values: Sequence[float], form: str = ".1f") -> str:
    """Mean ± standard deviation.

    >>> mean_sd([1.0, 2.0, 3.0]), mean_sd([-1.0], "+.1f"), mean_sd([])
    ('2.0 ± 1.0', '−1.0', '–')
    """
    if not len(values):
        return "–"
    deviation = f" ± {np.std(values, ddof=1):{form.removeprefix('+')}}" if len(values) > 1 else ""
    return minus(f"{np.mean(values):{form}}{deviation}")


def minus(text: str) -> str:
    """With a minus sign instead of a hyphen."""
    return text.replace("-", "−")


def models_table(study: Study) -> pd.DataFrame:
    """One row per short ERM model: its configuration, (β + γ) − α, and accuracy."""
    rows = []
    for where in CONFIGURATIONS:
        for run in study.models(where):
            record = study.records.runs.get(run.key, {})
            if "stages" in record:
                t = record["transferability"]
                separation = t["beta"] + t["gamma"] - t["alpha"]
                rows.append((study.setting.title, where, separation, accuracy(study, run.cell, run.key, 1)))
    return pd.DataFrame(rows, columns=["setting", "labels", "separation", "accuracy"])


def correlation_table(study: Study) -> pd.DataFrame:
    """By configuration: r of (β + γ) − α and accuracy with Fisher's 95 % interval, the rank correlation, the range."""
    rows = []
    for where, part in models_table(study).groupby("labels", sort=False):
        if len(part) > 3:
            pearson = stats.pearsonr(part["separation"], part["accuracy"])
            rank = stats.spearmanr(part["separation"], part["accuracy"]).statistic
            ends = part["accuracy"].min(), part["accuracy"].max()
            rows.append((where, len(part), *ends, pearson.statistic, *pearson.confidence_interval(0.95), rank))
    return pd.DataFrame(rows, columns=["labels", "models", "least", "most", "r", "low", "high", "rank"])
