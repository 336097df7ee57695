"""How far to trust the probabilities of a run on other data, beside its own test samples."""

from collections.abc import Iterator
from typing import Any

import pandas as pd

from crosstail.metrics._calibration import Calibration
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
from crosstail.reports.run.covered import SETS, covered, pair_sets, set_rows
from crosstail.reports.run.group_metrics import group_metrics, of_classes, of_domains, of_pairs, whole
from crosstail.reports.run.reported import ReportedRun
from crosstail.reports.wording import interval, number
from crosstail.training.probabilities import Probabilities
from crosstail.training.result import RunResult


def suffix(label: str) -> str:
    """Suffix for domains of the new data, because the run may have tested domains of the same name."""
    return f" ({label.removesuffix(' data')})"


def certainty_elsewhere(
    new: ReportedRun, own: RunResult, found: Evaluated, kept: Probabilities | None, label: str
) -> Iterator[Block]:
    """The section, with the temperatures and thresholds of the run; `kept` are the probabilities of its own samples."""
    given, said = new.calibration, found.probabilities
    if given is None:
        return
    test = None if kept is None or not kept.test.any() else kept.part(test=True)
    classes, old = own.classes, "own test set"
    yield Heading("How sure is it?")
    error, low, high = Confidence.of(said, given).error()
    against = "" if test is None else f", against {number(Confidence.of(test, given).error()[0])} on the run's test set"
    yield Text(
        f"With the run's temperatures and all pairs weighted equally, confidence and accuracy differ by "
        f"{number(error)} points on average on the {label} (95 % interval {interval(low, high)}){against}."
    )
    names = new.result.domains
    table = group_metrics(said, given, None, names, classes)
    rows = [[name, label, *row] for name, *row in reliability_rows(said, given, table, names)]
    curves = [Confidence.of(said, given).curves([name + suffix(label) for name in names], label)]
    if test is not None:
        table = group_metrics(test, given, None, own.domains, classes)
        rows += [[name, old, *row] for name, *row in reliability_rows(test, given, table, own.domains)]
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
    rows = [[name, label, *row] for name, *row in set_rows(found.sets, names)]
    rows += [[name, old, *row] for name, *row in set_rows(covered(test, given, own.domains), own.domains)]
    yield Table(header=["domain", "tested on", *SETS], rows=rows)
    yield pair_sets(found.sets, names, classes, counted=False)


def certainty_json(found: Evaluated, given: Calibration, classes: list[str]) -> dict[str, Any]:
    """Metrics of calibrated probabilities, with the domain unknown, and of prediction sets, for every group."""
    table = group_metrics(found.probabilities, given, found.sets, list(found.samples.domains), classes)

    def rows(part: pd.DataFrame, *names: str) -> list[dict[str, Any]]:
        kept = part.drop(columns=[name for name in ("domain", "class") if name not in names]).to_dict("records")
        return [{str(key): None if value != value else value for key, value in row.items()} for row in kept]

    return {
        "overall": rows(whole(table))[0],
        "domains": {row.pop("domain"): row for row in rows(of_domains(table), "domain")},
        "classes": {row.pop("class"): row for row in rows(of_classes(table), "class")},
        "pairs": rows(of_pairs(table), "domain", "class"),
        "coverage": COVERAGE,
    }
