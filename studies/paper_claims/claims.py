"""The paper's gains, ours with their intervals, and what the one says of the other."""

import math
from dataclasses import dataclass

import numpy as np
from scipy import stats
from studies.paper_claims import photos
from studies.paper_claims.accuracies import (
    METHODS,
    OTHERS,
    PHOTOS,
    Values,
    by_seed,
    correlation_table,
    finals,
    mean_sd,
    minus,
)
from studies.paper_claims.digits import CONFIGURATIONS, DIVERGENT, Setting
from studies.paper_claims.records import Records

STRONG = 0.8  # r from which we call a correlation very strong
TIGHT = 100 * (2.92947 / 2.92513 - 1)  # percent: the paper's
MISSING = ["–", "–", "missing"]


def interval(values: Values) -> tuple[float, float]:
    """Student's 95 % interval of the mean.

    >>> [round(end, 2) for end in interval([1.0, 2.0, 3.0])]
    [-0.48, 4.48]
    """
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)) if len(values) > 1 else math.inf
    return float(np.mean(values)) - half, float(np.mean(values)) + half


def verdict(values: Values, paper: float) -> str:
    """What the interval of a gain says of the paper's gain.

    >>> verdict([2.9, 3.0, 3.1], 3.0), verdict([0.9, 1.0, 1.1], 3.0), verdict([-1.0, 0.0, 1.0], 9.0)
    ('reproduced', 'partly: a gain, but smaller', 'not: no gain beyond the noise')
    """
    if not values:
        return "missing"
    low, high = interval(values)
    if low > 0:
        return "reproduced" if high >= paper else "partly: a gain, but smaller"
    if high < 0:
        return "not: a loss"
    if not paper:
        return "not shown: no gain beyond the noise"
    return "not shown: too noisy to tell" if high >= paper else "not: no gain beyond the noise"


@dataclass(frozen=True)
class Claim:
    """A gain that the paper has, and ours by seed."""

    text: str
    setting: str
    paper: float  # 0 where it gives no number
    ours: Values

    def row(self) -> list[str]:
        """As a row of the summary."""
        paper = f"{self.paper:+.1f}" if self.paper else "a gain"
        span = "–"
        if self.ours:
            low, high = interval(self.ours)
            span = f"{low:+.1f} to {high:+.1f}"
        return [self.text, self.setting, paper, mean_sd(self.ours, sign="+"), span, verdict(self.ours, self.paper)]


def claims(setting: Setting, records: Records) -> list[Claim]:
    """The gains on digits."""
    accuracies = {c: {m: by_seed(setting.plan(c), *e, records) for m, e in METHODS.items()} for c in CONFIGURATIONS}
    gains = {c: minus(found["BoDA_{r,c}"], found["ERM"]) for c, found in accuracies.items()}
    everywhere = [float(np.mean(seeds)) for seeds in zip(*gains.values(), strict=True)] if all(gains.values()) else []
    fair = minus(accuracies[DIVERGENT]["BoDA_{r,c}"], accuracies[DIVERGENT]["CRT"])
    drop = minus(accuracies["forward–forward"]["ERM"], accuracies[DIVERGENT]["ERM"])
    plan = setting.plan(DIVERGENT, tuple(OTHERS.values()))
    da = minus(accuracies[DIVERGENT]["BoDA_{r,c}"], by_seed(plan, OTHERS["DA"], 2, records))
    title = setting.title
    found = [
        Claim("BoDA_{r,c} over ERM, divergent labels", title, 9.5, gains[DIVERGENT]),
        Claim("BoDA_{r,c} over ERM, mean of five configurations", title, 6.4, everywhere),
        Claim("BoDA_{r,c} over CRT, divergent labels", title, 0.0, fair),
        Claim("ERM: identical over divergent long tails", title, 0.0, drop),
        Claim("BoDA_{r,c} over DA (five other sets)", title, 2.3, da),
    ]
    second = minus(accuracies[DIVERGENT]["CRT"], accuracies[DIVERGENT]["ERM"])
    found.append(Claim("a second stage for ERM (five other sets)", title, 1.6, second))
    for name, paper in (("DANN", 1.3), ("CORAL", 1.6)):
        gain = minus(by_seed(plan, OTHERS[name], 2, records), by_seed(plan, OTHERS[name], 1, records))
        found.append(Claim(f"a second stage for {name} (five other sets)", title, paper, gain))
    return found


def photo_claims(records: Records) -> list[Claim]:
    """The gains on photos."""
    plan = photos.plan()
    found = {name: by_seed(plan, *entry, records) for name, entry in PHOTOS.items()}
    title = "Office-Caltech10, unseen domain"
    both = "BoDA_{r,c} + CORAL"
    return [
        Claim("BoDA_{r,c} over ERM (five other sets)", title, 2.2, minus(found["BoDA_{r,c}"], found["ERM"])),
        Claim("BoDA_{r,c} over CORAL (five other sets)", title, 1.0, minus(found["BoDA_{r,c}"], found["CORAL"])),
        Claim(f"{both} over ERM (five other sets)", title, 2.9, minus(found[both], found["ERM"])),
    ]


def discrepancy_claim(setting: Setting, records: Records) -> Claim:
    """How much nearer to training BoDA_r brings the test features of few-shot pairs than ERM, in % of γ."""
    found = {}
    for method in ("ERM", "BoDA_r"):
        seeds = finals(setting.plan(DIVERGENT), *METHODS[method], records)
        pairs = [(record["discrepancy"]["few"]["mean"], record["transferability"]["gamma"]) for (record,) in seeds]
        found[method] = [100 * distance / gamma for distance, gamma in pairs]
    text = "feature discrepancy of few-shot pairs, ERM over BoDA_r, % of γ"
    return Claim(text, setting.title, 0.0, minus(found["ERM"], found["BoDA_r"]))


def level_row(setting: Setting, records: Records) -> list[str]:
    """ERM's accuracy where everything is balanced."""
    head = ["ERM when balanced, %", setting.title, "90.5"]
    values = by_seed(setting.plan("uniform–uniform"), *METHODS["ERM"], records)
    if not values:
        return [*head, *MISSING]
    low, high = interval(values)
    said = "reproduced" if low <= 90.5 <= high else "not: lower" if high < 90.5 else "not: higher"
    return [*head, mean_sd(values), f"{low:.1f} to {high:.1f}", said]


def correlation_row(setting: Setting, records: Records) -> list[str]:
    """Whether (β + γ) − α goes along with accuracy in every configuration."""
    head = ["r of (β + γ) − α and accuracy", setting.title, "“very strong”"]
    found = correlation_table(setting, records)
    if len(found) < len(CONFIGURATIONS):
        return [*head, *MISSING]
    least, most, surely = found["r"].min(), found["r"].max(), found["low"].min()
    said = "not: not in every configuration"
    if surely > 0:
        said = "reproduced" if least >= STRONG else "partly: not strong everywhere"
    return [*head, f"{least:+.2f} to {most:+.2f}", f"all above {surely:+.2f}", said]


def bound_row(setting: Setting, records: Records) -> list[str]:
    """How far the loss of all training samples is above its bound, with balanced labels, where ν does not matter."""
    head = ["loss above its bound, balanced labels, %", setting.title, f"{TIGHT:.2f}"]
    seeds = finals(setting.plan("uniform–uniform"), *METHODS["BoDA_r"], records)
    gaps = [100 * (empirical / least - 1) for (record,) in seeds for nu, empirical, least in record["bound"] if nu == 0]
    if not gaps:
        return [*head, *MISSING]
    low, high = interval(gaps)
    return [*head, mean_sd(gaps, 2), f"{low:.2f} to {high:.2f}", "reproduced" if low <= TIGHT else "not: looser"]
