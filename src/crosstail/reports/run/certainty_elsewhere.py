"""How far to trust the probabilities of a run on other data, beside its own test samples."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from crosstail.metrics import Answers
from crosstail.metrics._calibration import Calibration
from crosstail.prediction.cross_fit import covered
from crosstail.prediction.evaluate import Evaluated
from crosstail.prediction.sets import COVERAGE
from crosstail.reports.document.model import Block, Heading, Table, Text
from crosstail.reports.run.certainty import (
    RELIABILITY,
    RELIABILITY_NOTE,
    Confidence,
    reliability_chart,
    reliability_rows,
)
from crosstail.reports.run.certainty_data import SETS, calibrated_metrics, pair_sets, rows_by, set_rows
from crosstail.reports.wording import interval, number


def suffix(label: str) -> str:
    """Suffix for domains of the new data, because the run may have tested domains of the same name."""
    return f" ({label.removesuffix(' data')})"


def certainty_elsewhere(found: Evaluated, given: Calibration, test: Answers | None, label: str) -> Iterator[Block]:
    """The section, with the temperatures and thresholds of the run; `test` are its own test samples, if kept."""
    said, old = found.answers, "own test set"
    yield Heading("How sure is it?")
    error, low, high = Confidence.of(said, given).error()
    against = "" if test is None else f", against {number(Confidence.of(test, given).error()[0])} on the run's test set"
    yield Text(
        f"With the run's temperatures and all pairs weighted equally, confidence and accuracy differ by "
        f"{number(error)} points on average on the {label} (95 % interval {interval(low, high)}){against}."
    )
    table = calibrated_metrics(said, given, None)
    rows = [[name, label, *row] for name, *row in reliability_rows(said, given, table)]
    curves = [Confidence.of(said, given).curves([name + suffix(label) for name in said.domains], label)]
    if test is not None:
        table = calibrated_metrics(test, given, None)
        rows += [[name, old, *row] for name, *row in reliability_rows(test, given, table)]
        curves.append(Confidence.of(test, given).curves(test.domains, old))
    yield Table(header=["domain", "tested on", *RELIABILITY], rows=rows, note=RELIABILITY_NOTE)
    yield from reliability_chart(pd.concat(curves))
    if found.sets is None or test is None:
        return
    yield Heading("Prediction sets", 3)
    yield Text(
        f"With `--coverage {COVERAGE}`, {100 * found.sets['inside'].mean():.1f} % of the sets on the {label} contain "
        f"the true class. Their thresholds come from the run's test set, whose own sets use its other samples."
    )
    rows = [[name, label, *row] for name, *row in set_rows(found.sets, said.domains)]
    rows += [[name, old, *row] for name, *row in set_rows(covered(test, given), test.domains)]
    yield Table(header=["domain", "tested on", *SETS], rows=rows)
    yield pair_sets(found.sets, said.domains, said.classes, counted=False)


def certainty_json(found: Evaluated, given: Calibration) -> dict[str, Any]:
    """Metrics of calibrated probabilities, with the domain unknown, and of prediction sets, for every group."""
    table = calibrated_metrics(found.answers, given, found.sets)

    def rows(*keys: str) -> list[dict[str, Any]]:
        kept = rows_by(table, *keys).drop(columns=list({"domain", "class"} - set(keys))).to_dict("records")
        return [{str(key): None if value != value else value for key, value in row.items()} for row in kept]

    return {
        "overall": rows()[0],
        "domains": {row.pop("domain"): row for row in rows("domain")},
        "classes": {row.pop("class"): row for row in rows("class")},
        "pairs": rows("domain", "class"),
        "coverage": COVERAGE,
    }
