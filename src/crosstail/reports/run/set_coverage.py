"""Prediction sets of test samples: how often they contain the true class, and how many classes they have."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from crosstail.data.splits.groups import fold_of
from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.prediction.sets import COVERAGE, PredictionSets, has_threshold
from crosstail.reports.document.model import Table
from crosstail.reports.wording import number

FOLDS = 5
SETS = ["tested", "covered, %", "classes per set", "to review, %"]
CLASSES, DOMAINS = 40, 8  # the largest table with a cell for each pair
LARGEST = 20  # pairs in the list instead


def covered(test: Answers, given: Calibration) -> pd.DataFrame:
    """A row for each test sample: domain, class, whether its set contains it, and the size of the set.

    Thresholds come from other test samples, in turns, with groups kept whole.
    """
    assert test.told.log_p is not None
    said, pair = given.probabilities(test.told.log_p, test.domain, test.domains), test.pair
    own, members = said[np.arange(len(said)), test.y], np.ones(said.shape, bool)
    sizes = {"num_sites": len(test.domains), "num_classes": said.shape[1]}
    groups = len(pair) if test.group is None else len(np.unique(test.group))
    fold = fold_of(pair, test.group, min(FOLDS, groups), seed=0) if groups > 1 else np.zeros(len(pair), np.int64)
    for k in range(int(fold.max()) + 1):
        rest, now = fold != k, fold == k
        sets = PredictionSets.calibrated(own[rest], test.y[rest], test.domain[rest], **sizes, coverage=COVERAGE)
        members[now] = sets.members(said[now], test.domain[now])
    inside = members[np.arange(len(pair)), test.y]
    return pd.DataFrame({"domain": test.domain, "class": test.y, "inside": inside, "size": members.sum(1)})


def summary(own: pd.DataFrame) -> dict[str, float]:
    """Coverage, mean set size and share to review over some rows of `covered`."""
    review = float((own["size"] != 1).mean())
    return {"covered": float(own["inside"].mean()), "classes_per_set": float(own["size"].mean()), "to_review": review}


def set_rows(table: pd.DataFrame, domains: Sequence[str]) -> list[list[str]]:
    """A row for each domain with test samples: its name and what `SETS` names, from the table of `covered`."""
    return [
        [name, *_cells(own)]
        for name, own in ((name, table[table["domain"] == d]) for d, name in enumerate(domains))
        if len(own)
    ]


def pair_sets(table: pd.DataFrame, domains: Sequence[str], classes: Sequence[str], counted: bool = True) -> Table:
    """Coverage and size of the sets of every pair; of many pairs, those with the largest sets.

    If they are `counted`, thresholds come from these samples, and pairs with too few of them are marked.
    """
    pairs: dict[Any, pd.DataFrame] = dict(iter(table.groupby(["domain", "class"])))
    enough = has_threshold(np.array([len(own) for own in pairs.values()]), COVERAGE) | (not counted)
    alone = dict(zip(pairs, enough, strict=True))
    note = "* Too few test samples for a threshold of its own: the class's is used, or the domain's."
    note *= not enough.all()
    if len(classes) > CLASSES or len(domains) > DOMAINS:
        largest = sorted(pairs, key=lambda pair: -pairs[pair]["size"].mean())[:LARGEST]
        names = [f"{domains[d]} / {classes[c]}{'' if alone[d, c] else ' *'}" for d, c in largest]
        rows = [[name, *_cells(pairs[pair])] for name, pair in zip(names, largest, strict=True)]
        title = f"The {len(largest)} pairs with the largest sets" if len(pairs) > LARGEST else "Every pair"
        return Table(header=["pair", *SETS], rows=rows, title=title, note=note)
    used = [d for d in range(len(domains)) if any((d, c) in pairs for c in range(len(classes)))]
    most = max(1, len(classes) - 1)
    cells = {
        (c, j): f"{100 * own['inside'].mean():.0f} % · {own['size'].mean():.1f}{'' if alone[d, c] else ' *'}"
        for j, d in enumerate(used, start=1)
        for c in range(len(classes))
        if (own := pairs.get((d, c))) is not None
    }
    return Table(
        header=["class", *(domains[d] for d in used)],
        rows=[[name, *(cells.get((c, j), "–") for j in range(1, len(used) + 1))] for c, name in enumerate(classes)],
        title="Every pair: how many sets contain the true class, and classes per set",
        note=note,
        shades={(c, j): (pairs[used[j - 1], c]["size"].mean() - 1) / most for c, j in cells},
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
