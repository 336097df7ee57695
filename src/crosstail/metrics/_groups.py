"""All metrics of all samples together, of every domain, class and pair."""

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from crosstail.metrics._answers import Answers
from crosstail.metrics._metric import find, names
from crosstail.metrics._reliability import calibration_error
from crosstail.metrics._values import PairValues


def group_metrics(answers: Answers) -> pd.DataFrame:
    """A row for each group with samples: `domain` and `class` are empty where a row is about all of them.

    A class, over all domains or in one, is measured as a pair is; a domain, or all samples as if they came from one, as
    a domain is; by a metric that weighs pairs by their frequency, both are means over pairs. `calibration_low` and
    `calibration_high` are the 95 % interval of the calibration error.
    """
    rows: list[dict[str, Any]] = []
    for of, named in ((answers.in_one_domain(), False), (answers, True)):
        values = {name: of.value(name) for name in names() if getattr(of, find(name).needs) is not None}
        by_domain = {name: value.domains for name, value in values.items()}
        matrix = {name: value.matrix for name, value in values.items()}
        for name in [] if named else [name for name in values if find(name).frequent]:
            own = answers.value(name)
            by_domain[name], matrix[name] = [own.pair_average], _by_class(own)
        totals = values["accuracy"].totals
        for d in np.flatnonzero(totals.sum(axis=1)).tolist():
            place: dict[str, Any] = {"domain": of.domains[d]} if named else {}
            own = of.domain == d
            whole = {name: by_domain[name][d] for name in values}
            rows.append(place | {"samples": int(totals[d].sum())} | whole | _calibration(of, own))
            for c in np.flatnonzero(totals[d]).tolist():
                of_pair = {name: table[d, c] for name, table in matrix.items()}
                place["class"] = of.classes[c]
                rows.append(place | {"samples": int(totals[d, c])} | of_pair | _calibration(of, own & (of.y == c)))
    found = pd.DataFrame(rows)
    columns = found.columns.drop(["domain", "class"], errors="ignore")
    return found.reindex(columns=["domain", "class", *columns]).astype(dict.fromkeys(columns[1:], float))


def _by_class(values: PairValues) -> NDArray[np.float64]:
    """The mean over the pairs of each class (1, C), by their weights; NaN where they have none."""
    assert values.weights is not None
    weights = np.where(np.isnan(values.matrix), 0.0, values.weights)
    total, sums = weights.sum(0), (weights * np.nan_to_num(values.matrix)).sum(0)
    return np.divide(sums, total, where=total > 0, out=np.full(len(total), np.nan))[None]


def _calibration(answers: Answers, own: np.ndarray[Any, Any]) -> dict[str, float]:
    if answers.log_p is None:
        return {}
    confidence = np.exp(answers.log_p[own].max(1).astype(np.float64))
    _, low, high = calibration_error(confidence, answers.correct[own])
    return {"calibration_low": low, "calibration_high": high}
