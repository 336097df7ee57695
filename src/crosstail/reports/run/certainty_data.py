"""How sure a model is: prediction sets of test samples, and all metrics of every group."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from crosstail.metrics import Answers, group_metrics
from crosstail.metrics._calibration import Calibration, calibrated
from crosstail.reports.run.set_coverage import covered
from crosstail.reports.run.two_questions import Questions
from crosstail.training.run import Run

FILE = "metrics.csv"
"""File in the run's folder with the metrics of its test samples."""
GROUPS: list[list[str]] = [[], ["domain"], ["class"], ["domain", "class"]]


@dataclass(frozen=True, eq=False)
class Certainty:
    """Log probabilities, prediction sets and metrics of test samples."""

    samples: Answers
    given: Calibration
    sets: pd.DataFrame | None
    """Result of `covered`; None for a single sample."""
    metrics: pd.DataFrame
    """Result of `calibrated_metrics`."""
    questions: Questions | None

    @classmethod
    def of(cls, run: Run) -> "Certainty | None":
        """From a run, if it has kept log probabilities; thresholds of prediction sets come from other samples."""
        if run.held_out is None or run.calibration is None or not len(run.held_out.test):
            return None
        test, given = run.held_out.test, run.calibration
        sets = covered(test, given) if len(test) > 1 else None
        return cls(test, given, sets, calibrated_metrics(test, given, sets), Questions.of_runs([run]))


def calibrated_metrics(test: Answers, given: Calibration, sets: pd.DataFrame | None) -> pd.DataFrame:
    """A row for each group, with `domain` and `class` empty where it has all of them; `sets` is from `covered`.

    Probabilities are calibrated, with the domain unknown; prediction sets are made with it known.
    """
    found = group_metrics(calibrated(test, given))
    if sets is None:
        return found
    named = sets.assign(review=sets["size"] != 1, domain=[test.domains[d] for d in sets["domain"]])
    named["class"] = [test.classes[c] for c in sets["class"]]
    means = {"covered": ("inside", "mean"), "classes_per_set": ("size", "mean"), "to_review": ("review", "mean")}
    parts = [named.groupby(keys or np.zeros(len(named))).agg(**means).reset_index() for keys in GROUPS]
    every = pd.concat(parts).reindex(columns=["domain", "class", *means])
    return found.merge(every, on=["domain", "class"], how="left")


def rows_by(table: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """The rows of each "domain", each "class", each pair if both are named, or the one of all samples."""
    return table[(table["domain"].notna() == ("domain" in keys)) & (table["class"].notna() == ("class" in keys))]
