"""All metrics of probabilities for every domain, class and pair, and for all samples together."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosstail.metrics._calibration import Calibration
from crosstail.metrics.probabilities import metrics_of_every_group
from crosstail.reports.run.covered import covered
from crosstail.training.probabilities import Probabilities

FILE = "metrics.csv"
"""File in the run's folder with the metrics of its test samples."""
GROUPS: list[list[str]] = [[], ["domain"], ["class"], ["domain", "class"]]


@dataclass(frozen=True, eq=False)
class Tested:
    """Probabilities, prediction sets and metrics of a run's test samples."""

    samples: Probabilities
    given: Calibration
    sets: pd.DataFrame | None
    """Result of `covered`; None for a single sample."""
    metrics: pd.DataFrame
    """Result of `group_metrics`."""

    @classmethod
    def of(cls, kept: Probabilities, given: Calibration, domains: list[str], classes: list[str]) -> "Tested":
        """From stored probabilities; thresholds of sets come from other test samples."""
        test = kept.part(test=True)
        sets = covered(test, given, domains) if len(test.y) > 1 else None
        return cls(test, given, sets, group_metrics(test, given, sets, domains, classes))


def group_metrics(
    test: Probabilities, given: Calibration, sets: pd.DataFrame | None, domains: list[str], classes: list[str]
) -> pd.DataFrame:
    """A row for each group, with `domain` and `class` empty where it has all of them; `sets` is that of `covered`.

    Probabilities are calibrated, with the domain unknown; prediction sets are those where it is known.
    """
    said = given.probabilities(test.unknown, -1, ())
    found = metrics_of_every_group(said, test.y, test.domain, domains=domains, classes=classes)
    if sets is None:
        return found
    named = sets.assign(review=sets["size"] != 1, domain=[domains[d] for d in sets["domain"]])
    named["class"] = [classes[c] for c in sets["class"]]
    means = {"covered": ("inside", "mean"), "classes_per_set": ("size", "mean"), "to_review": ("review", "mean")}
    parts = [named.groupby(keys or np.zeros(len(named))).agg(**means).reset_index() for keys in GROUPS]
    return found.merge(
        pd.concat(parts).reindex(columns=["domain", "class", *means]), on=["domain", "class"], how="left"
    )


def whole(table: pd.DataFrame) -> pd.DataFrame:
    """The row of all samples."""
    return table[table["domain"].isna() & table["class"].isna()]


def of_domains(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of whole domains."""
    return table[table["domain"].notna() & table["class"].isna()]


def of_classes(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of classes in all domains."""
    return table[table["domain"].isna() & table["class"].notna()]


def of_pairs(table: pd.DataFrame) -> pd.DataFrame:
    """The rows of pairs."""
    return table[table["domain"].notna() & table["class"].notna()]
