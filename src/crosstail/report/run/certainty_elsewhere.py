"""How far to trust the probabilities of a run on other data, beside its own test samples."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from crosstail.metrics.calibration import Calibration
from crosstail.metrics.probabilities import metric_table
from crosstail.prediction.evaluate import Evaluated
from crosstail.prediction.sets import COVERAGE
from crosstail.report.document.model import Block, Heading, Table, Text
from crosstail.report.run.certainty import (
    RELIABILITY,
    RELIABILITY_NOTE,
    SETS,
    Confidence,
    covered,
    reliability_chart,
    reliability_rows,
    set_rows,
)
from crosstail.report.run.reported import ReportedRun
from crosstail.report.wording import interval, number
from crosstail.training.probabilities import Probabilities
from crosstail.training.result import RunResult


def suffix(label: str) -> str:
    """What follows the name of a domain of these data, which the run may have tested, too."""
    return f" ({label.removesuffix(' data')})"


def certainty_elsewhere(
    new: ReportedRun, own: RunResult, found: Evaluated, kept: Probabilities | None, label: str
) -> Iterator[Block]:
    """The section, with the temperatures and thresholds of the run; `kept` is what it said of its own samples."""
    given, said = new.calibration, found.probabilities
    if given is None:
        return
    test = None if kept is None or not kept.test.any() else kept.part(test=True)
    classes, old = own.classes, "own test set"
    yield Heading("How sure is it?")
    error, low, high = Confidence.of(said, given).error()
    against = "" if test is None else f", against {number(Confidence.of(test, given).error()[0])} on the run's test set"
    yield Text(
        f"With the run's temperatures and every pair weighing the same, confidence and accuracy differ by "
        f"{number(error)} points on average on the {label} (95 % interval {interval(low, high)}){against}."
    )
    rows = [[name, label, *row] for name, *row in reliability_rows(said, given, new.result.domains, classes)]
    named = [name + suffix(label) for name in new.result.domains]
    curves = [Confidence.of(said, given).curves(named, label)]
    if test is not None:
        rows += [[name, old, *row] for name, *row in reliability_rows(test, given, own.domains, classes)]
        curves.append(Confidence.of(test, given).curves(own.domains, old))
    yield Table(header=["domain", "tested on", *RELIABILITY], rows=rows, note=RELIABILITY_NOTE)
    yield from reliability_chart(pd.concat(curves))
    if found.sets is None or test is None:
        return
    yield Heading("Prediction sets", 3)
    yield Text(
        f"With `--coverage {COVERAGE}`, {100 * found.sets['inside'].mean():.1f} % of the sets on the {label} contain "
        f"the true class. Their thresholds come from the run's test set, whose own sets use its other samples."
    )
    rows = [[name, label, *row] for name, *row in set_rows(found.sets, new.result.domains)]
    rows += [[name, old, *row] for name, *row in set_rows(covered(test, given, own.domains), own.domains)]
    yield Table(header=["domain", "tested on", *SETS], rows=rows)


def certainty_json(found: Evaluated, given: Calibration, classes: list[str]) -> dict[str, Any]:
    """Metrics of calibrated probabilities, with the domain unknown, and of prediction sets: overall and by domain."""
    said, domains = found.probabilities, list(found.samples.domains)
    p = given.probabilities(said.unknown, -1, ())
    about: dict[str, Any] = {"domains": domains, "classes": classes}
    whole = metric_table(p, said.y, said.domain, **about).to_dict("records")[0]
    parts = metric_table(p, said.y, said.domain, "domain", **about).to_dict("records")
    groups: list[tuple[str | None, dict[Any, Any]]] = [(None, whole), *((row.pop("domain"), row) for row in parts)]
    every: dict[str | None, dict[str, float | None]] = {
        name: {key: None if np.isnan(value) else value for key, value in row.items()} for name, row in groups
    }
    if found.sets is not None:
        for name, row in every.items():
            own = found.sets if name is None else found.sets[found.sets["domain"] == domains.index(name)]
            row |= {"covered": float(own["inside"].mean()), "classes_per_set": float(own["size"].mean())}
            row["to_review"] = float((own["size"] != 1).mean())
    return {"overall": every.pop(None), "domains": every, "coverage": COVERAGE}
