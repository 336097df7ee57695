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
    differences,
    reliability_chart,
    reliability_rows,
)
from crosstail.reports.run.certainty_data import SETS, calibrated_metrics, pair_sets, rows_by, set_rows
from crosstail.reports.wording import interval, number


def suffix(label: str) -> str:
    """Suffix for domains of the new data, because the run may have tested domains of the same name."""
    return f" ({label.removesuffix(' data')})"


OLD = "own test set"


def reliability_elsewhere(said: Answers, given: Calibration, test: Answers | None, label: str) -> Table:
    """Metrics of the probabilities by domain, for an appendix; `test` are the run's own test samples, if kept."""
    rows = []
    for answers, what in ((said, label), (test, OLD)):
        if answers is not None:
            own = reliability_rows(answers, given, calibrated_metrics(answers, given, None))
            rows += [[name, what, *row] for name, *row in own]
    return Table(header=["domain", "tested on", *RELIABILITY], rows=rows, note=RELIABILITY_NOTE)


def certainty_elsewhere(
    found: Evaluated, given: Calibration, test: Answers | None, label: str, every: Table
) -> Iterator[Block]:
    """The section, with the temperatures and thresholds of the run; `every` is from `reliability_elsewhere`."""
    said = found.answers
    yield Heading("How sure is it?")
    error, low, high = Confidence.of(said, given).error()
    against = "" if test is None else f", against {number(Confidence.of(test, given).error()[0])} on the run's test set"
    yield Text(
        f"With the run's temperatures and all pairs weighted equally, confidence and accuracy differ by "
        f"{number(error)} points on average on the {label} (95 % interval {interval(low, high)}){against}."
    )
    curves = [Confidence.of(said, given).curves([name + suffix(label) for name in said.domains], label)]
    if test is not None:
        curves.append(Confidence.of(test, given).curves(test.domains, OLD))
    yield differences(every)
    yield from reliability_chart(pd.concat(curves))
    if found.sets is None or test is None:
        return
    yield Heading("Prediction sets", 3)
    yield Text(
        f"With `--coverage {COVERAGE}`, {100 * found.sets['inside'].mean():.1f} % of the sets on the {label} contain "
        f"the true class. Their thresholds come from the run's test set, whose own sets use its other samples."
    )
    rows = [[name, label, *row] for name, *row in set_rows(found.sets, said.domains)]
    rows += [[name, OLD, *row] for name, *row in set_rows(covered(test, given), test.domains)]
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
