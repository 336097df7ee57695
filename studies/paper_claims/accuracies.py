"""Test accuracies of what was selected on validation, from the records."""

import numpy as np
import pandas as pd
from scipy import stats
from studies.paper_claims.digits import BODA, CONFIGURATIONS, ERM, Setting
from studies.paper_claims.records import Record, Records
from studies.paper_claims.series import chosen

from crosstail.metrics import PairAccuracy
from crosstail.sweep.plan import Plan

Values = list[float]
METHODS = {"ERM": (ERM, 1), "CRT": (ERM, 2), "BoDA_r": (BODA, 1), "BoDA_{r,c}": (BODA, 2)}
OTHERS = {"DA": "da:retrain", "DANN": "dann:retrain", "CORAL": "coral:retrain"}
PHOTOS = {
    "ERM": ("erm:retrain", 1),
    "CORAL": ("coral:retrain", 1),
    "BoDA_{r,c}": ("boda:retrain", 2),
    "BoDA_{r,c} + CORAL": ("boda+coral:retrain", 2),
}


def accuracy(record: Record, stage: int) -> float:
    """Test accuracy, mean over pairs, in percent."""
    average = PairAccuracy(np.array(record["stages"][stage - 1]["hits"]), np.array(record["totals"])).pair_average
    assert average is not None
    return 100 * average


def finals(plan: Plan, entry: str, stage: int, records: Records) -> list[list[Record]]:
    """The runs of the trial that is best on validation, by seed; of seeds that are not finished, none."""
    choice = chosen(plan, entry, stage, records)
    if choice.missing or choice.trial is None:
        return []
    found = [[records.runs.get(key, {}) for key in keys] for keys in choice.finals()]
    return found if all("stages" in record for seed in found for record in seed) else []


def by_seed(plan: Plan, entry: str, stage: int, records: Records) -> Values:
    """Test accuracy by seed; with several unseen domains their mean."""
    seeds = finals(plan, entry, stage, records)
    return [float(np.mean([accuracy(record, stage) for record in runs])) for runs in seeds]


def minus(first: Values, second: Values) -> Values:
    """The difference by seed; nothing where one of the two is missing."""
    return [a - b for a, b in zip(first, second, strict=True)] if first and second else []


def mean_sd(values: Values, places: int = 1, sign: str = "") -> str:
    """Mean ± standard deviation.

    >>> mean_sd([1.0, 2.0, 3.0]), mean_sd([])
    ('2.0 ± 1.0', '–')
    """
    if not values:
        return "–"
    deviation = f" ± {np.std(values, ddof=1):.{places}f}" if len(values) > 1 else ""
    return f"{np.mean(values):{sign}.{places}f}{deviation}"


def varied_table(setting: Setting, records: Records) -> pd.DataFrame:
    """One row per ERM model: its configuration, (β + γ) − α, and accuracy."""
    rows = []
    for configuration in CONFIGURATIONS:
        for spec in setting.varied(configuration):
            record = records.runs.get(spec.key, {})
            if "stages" in record:
                t = record["transferability"]
                rows.append((setting.title, configuration, t["beta"] + t["gamma"] - t["alpha"], accuracy(record, 1)))
    return pd.DataFrame(rows, columns=["setting", "labels", "separation", "accuracy"])


def correlation_table(setting: Setting, records: Records) -> pd.DataFrame:
    """By configuration: r of (β + γ) − α and accuracy with Fisher's 95 % interval, the rank correlation, the range."""
    rows = []
    for configuration, part in varied_table(setting, records).groupby("labels", sort=False):
        if len(part) == setting.models:
            pearson = stats.pearsonr(part["separation"], part["accuracy"])
            rank = stats.spearmanr(part["separation"], part["accuracy"]).statistic
            ends = part["accuracy"].min(), part["accuracy"].max()
            rows.append((configuration, len(part), *ends, pearson.statistic, *pearson.confidence_interval(0.95), rank))
    return pd.DataFrame(rows, columns=["labels", "models", "least", "most", "r", "low", "high", "rank"])
