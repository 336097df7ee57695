"""How sure a model is: prediction sets of test samples, and all metrics of every group."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from crosstail.metrics import Answers, group_metrics
from crosstail.metrics._calibration import Calibration, calibrated
from crosstail.prediction.critical import targets
from crosstail.prediction.cross_fit import covered
from crosstail.prediction.sets import COVERAGE, has_threshold
from crosstail.reports.document.model import Table
from crosstail.reports.run.two_questions import Questions
from crosstail.reports.wording import number
from crosstail.training.run import Run

FILE = "metrics.csv"
"""File in the run's folder with the metrics of its test samples."""
GROUPS: list[list[str]] = [[], ["domain"], ["class"], ["domain", "class"]]
SETS = ["tested", "covered, %", "classes per set", "to review, %"]
LARGEST = 20  # pairs that are listed


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
    recalls: Mapping[int, float]
    """Of critical classes, as asked for."""

    @classmethod
    def of(cls, run: Run) -> "Certainty | None":
        """From a run, if it has kept log probabilities; thresholds of prediction sets come from other samples."""
        if run.held_out is None or run.calibration is None or not len(run.held_out.test):
            return None
        test, given = run.held_out.test, run.calibration
        recalls = targets(run.result.critical, run.result.classes)
        sets = covered(test, given, recalls=recalls) if len(test) > 1 else None
        return cls(test, given, sets, calibrated_metrics(test, given, sets), Questions.of_runs([run]), recalls)


def calibrated_metrics(test: Answers, given: Calibration, sets: pd.DataFrame | None) -> pd.DataFrame:
    """A row for each group, with `domain` and `class` empty where it has all of them; `sets` is from `covered`.

    Probabilities are calibrated, with the domain unknown; prediction sets are made with it known.
    """
    found = group_metrics(calibrated(test, given))
    if sets is None:
        return found
    named = sets.assign(domain=[test.domains[d] for d in sets["domain"]])
    named["class"] = [test.classes[c] for c in sets["class"]]
    means = {"covered": ("inside", "mean"), "classes_per_set": ("size", "mean"), "to_review": ("review", "mean")}
    parts = [named.groupby(keys or np.zeros(len(named))).agg(**means).reset_index() for keys in GROUPS]
    every = pd.concat(parts).reindex(columns=["domain", "class", *means])
    return found.merge(every, on=["domain", "class"], how="left")


def rows_by(table: pd.DataFrame, *keys: str) -> pd.DataFrame:
    """The rows of each "domain", each "class", each pair if both are named, or the one of all samples."""
    return table[(table["domain"].notna() == ("domain" in keys)) & (table["class"].notna() == ("class" in keys))]


def summary(own: pd.DataFrame) -> dict[str, float]:
    """Coverage, mean set size and share to review over some rows of `covered`."""
    columns = {"covered": "inside", "classes_per_set": "size", "to_review": "review"}
    return {name: float(own[column].mean()) for name, column in columns.items()}


def set_rows(table: pd.DataFrame, domains: Sequence[str]) -> list[list[str]]:
    """A row for each domain with test samples: its name and what `SETS` names, from the table of `covered`."""
    return [
        [name, *_cells(own)]
        for name, own in ((name, table[table["domain"] == d]) for d, name in enumerate(domains))
        if len(own)
    ]


def pair_sets(table: pd.DataFrame, domains: Sequence[str], classes: Sequence[str], counted: bool = True) -> Table:
    """Coverage and size of the sets of the pairs with the largest sets.

    If they are `counted`, thresholds come from these samples, and pairs with too few of them are marked.
    """
    pairs: dict[Any, pd.DataFrame] = dict(iter(table.groupby(["domain", "class"])))
    largest = sorted(pairs, key=lambda pair: -pairs[pair]["size"].mean())[:LARGEST]
    few = {pair for pair in largest if counted and not has_threshold(np.array(len(pairs[pair])), COVERAGE)}
    return Table(
        header=["pair", *SETS],
        rows=[[f"{domains[d]} / {classes[c]}{' *' * ((d, c) in few)}", *_cells(pairs[d, c])] for d, c in largest],
        title=f"The {len(largest)} pairs with the largest sets" if len(pairs) > LARGEST else "Every pair",
        note="* Too few test samples for a threshold of its own: the class's is used, or the domain's." * bool(few),
    )


def _cells(own: pd.DataFrame) -> list[str]:
    """Cells of the columns `SETS` for some rows of `covered`."""
    found = summary(own)
    return [
        f"{len(own):,}",
        number(100 * found["covered"]),
        number(found["classes_per_set"], 2),
        number(100 * found["to_review"], 0),
    ]
