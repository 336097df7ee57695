"""The paper's claims beside our measurements, and the verdict on each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pandas as pd
from scipy import stats
from studies.paper_claims.design import CONFIGURATIONS, DOMAINS, SEEDS, UNIFORM, Study
from studies.paper_claims.measured import Measured, accuracy, bound_gap, discrepancy, measured

from crosstail.metrics import mean_interval

STRONG = 0.8  # r from which we call a correlation very strong
BALANCED = 90.5  # percent: the paper's ERM with balanced labels
TIGHT = 100 * (2.92947 / 2.92513 - 1)  # percent: the paper's gap between loss and bound


@dataclass(frozen=True)
class Claim:
    """What the paper says, what we measured, and the rule that compares them."""

    text: str
    paper: str
    ours: Measured
    judge: Callable[[Sequence[float]], str]
    form: str = "+.1f"

    def row(self, study: Study) -> list[str]:
        """As a row of the table of claims."""
        said = self.ours.missing() or self.judge(self.ours.values)
        return [self.text, study.setting.title, self.paper, self.ours.mean(self.form), self.ours.span(self.form), said]


def verdict(values: Sequence[float], paper: float) -> str:
    """Compare the interval of a gain with the paper's gain, 0 where the paper gives no number.

    >>> verdict([2.9, 3.0, 3.1], 3.0), verdict([0.9, 1.0, 1.1], 3.0), verdict([-1.0, 0.0, 1.0], 9.0)
    ('reproduced', 'partly: a gain, but smaller', 'not: no gain beyond the noise')
    """
    low, high = mean_interval(values)
    if low > 0:
        return "reproduced" if high >= paper else "partly: a gain, but smaller"
    if high < 0:
        return "not: a loss"
    if not paper:
        return "not shown: no gain beyond the noise"
    return "not shown: too noisy to tell" if high >= paper else "not: no gain beyond the noise"


def gain(text: str, paper: float, ours: Measured) -> Claim:
    """A claim about a difference."""
    return Claim(text, f"{paper:+.1f}" if paper else "a gain", ours, lambda values: verdict(values, paper))


def claims(study: Study) -> list[Claim]:
    """The claims that a setting tests; a star marks what the paper measured on five other data sets."""
    if study.setting.photos:
        erm, coral = (measured(study, name, DOMAINS) for name in ("erm", "coral"))
        boda, both = (measured(study, f"{name}:retrain", DOMAINS) for name in ("boda", "boda+coral"))
        return [
            gain("BoDA_{r,c} over ERM *", 2.2, boda - erm),
            gain("BoDA_{r,c} over CORAL *", 1.0, boda - coral),
            gain("BoDA_{r,c} + CORAL over ERM *", 2.9, both - erm),
        ]
    erm, crt, boda, da = (measured(study, name) for name in ("erm", "erm:retrain", "boda:retrain", "da:retrain"))
    dann, coral = (measured(study, f"{name}:retrain") - measured(study, name) for name in ("dann", "coral"))
    everywhere = [measured(study, name, tuple(CONFIGURATIONS)) for name in ("boda:retrain", "erm")]
    nu = [measured(study, "boda:retrain", changed=changed, seeds=SEEDS) for changed in ((), (("nu", 0.0),))]
    far, near = (measured(study, name, measure=discrepancy("mean")) for name in ("erm", "boda"))
    balanced = measured(study, "erm", (UNIFORM,))
    gap = measured(study, "boda", (UNIFORM,), measure=bound_gap)
    return [
        gain("BoDA_{r,c} over ERM, divergent labels", 9.5, boda - erm),
        gain("BoDA_{r,c} over ERM, mean of five configurations", 6.4, everywhere[0] - everywhere[1]),
        gain("BoDA_{r,c} over CRT, divergent labels", 0.0, boda - crt),
        gain("BoDA_{r,c} over DA with a second stage *", 2.3, boda - da),
        gain("BoDA_{r,c}: ν = 1 over ν = 0 *", 1.2, nu[0] - nu[1]),
        gain("a second stage for ERM *", 1.6, crt - erm),
        gain("a second stage for DANN *", 1.3, dann),
        gain("a second stage for CORAL *", 1.6, coral),
        gain("ERM: identical over divergent long tails", 0.0, measured(study, "erm", ("forward–forward",)) - erm),
        Claim("ERM when balanced, %", f"{BALANCED}", balanced, _reached, ".1f"),
        Claim("few-shot feature discrepancy, ERM over BoDA_r, in γ", "a gain", far - near, _smaller, "+.2f"),
        Claim("loss above its bound, balanced labels, %", f"{TIGHT:.2f}", gap, _tight, ".2f"),
        _correlated(study),
    ]


def _reached(values: Sequence[float]) -> str:
    low, high = mean_interval(values)
    return "reproduced" if low <= BALANCED <= high else "not: lower" if high < BALANCED else "not: higher"


def _smaller(values: Sequence[float]) -> str:
    return verdict(values, 0.0)


def _tight(values: Sequence[float]) -> str:
    return "reproduced" if mean_interval(values)[0] <= TIGHT else "not: looser"


def _correlated(study: Study) -> Claim:
    """Whether (β + γ) − α goes along with accuracy in every configuration; the values are r by configuration."""
    runs = [run.key for where in CONFIGURATIONS for run in study.models(where)]
    found = correlations(study)

    def judge(values: Sequence[float]) -> str:
        if len(values) < len(CONFIGURATIONS) or found["low"].min() <= 0:
            return "not: not in every configuration"
        return "reproduced" if min(values) >= STRONG else "partly: not strong everywhere"

    ours = Measured(dict(enumerate(found["r"])), frozenset(key for key in runs if key not in study.records))
    return Claim("r of (β + γ) − α and accuracy, five configurations", "“very strong”", ours, judge, "+.2f")


def models(study: Study) -> pd.DataFrame:
    """One row per short ERM model: its configuration, (β + γ) − α, and accuracy."""
    rows = []
    for run in (run for where in CONFIGURATIONS for run in study.models(where)):
        record = study.records.runs.get(run.key, {})
        if "stages" in record:
            t = record["transferability"]
            separation = t["beta"] + t["gamma"] - t["alpha"]
            rows.append((study.setting.title, run.cell.where, separation, accuracy(record, 1)))
    return pd.DataFrame(rows, columns=["setting", "labels", "separation", "accuracy"])


def correlations(study: Study) -> pd.DataFrame:
    """By configuration: r of (β + γ) − α and accuracy with Fisher's 95 % interval, and the range."""
    rows = []
    for where, part in models(study).groupby("labels", sort=False):
        if len(part) > 3 and part["accuracy"].nunique() > 1:
            pearson = stats.pearsonr(part["separation"], part["accuracy"])
            ends = part["accuracy"].min(), part["accuracy"].max()
            rows.append((where, len(part), *ends, pearson.statistic, *pearson.confidence_interval(0.95)))
    return pd.DataFrame(rows, columns=["labels", "models", "least", "most", "r", "low", "high"])
