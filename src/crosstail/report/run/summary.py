"""The metrics of a run as one table for the terminal."""

from collections.abc import Sequence
from dataclasses import replace

from crosstail.metrics import PairAccuracy
from crosstail.report.document.model import Table
from crosstail.report.run.tables import DISTANCES, STATISTICS, fold_table
from crosstail.report.wording import number, percent, tail_note, worst_pair
from crosstail.training.result import RunResult


def accuracy_summary(title: str, accuracy: PairAccuracy, domains: Sequence[str], classes: Sequence[str]) -> Table:
    """The accuracy of one model on one set of samples."""
    interval = accuracy.interval("pair_average")
    spread = f"95 % interval {percent(interval[0])} to {percent(interval[1])}" if interval else ""
    rows = [
        ["pair average, %", percent(accuracy.pair_average), spread],
        ["worst pair", percent(accuracy.worst_pair), worst_pair(accuracy, domains, classes)],
        ["10th percentile", percent(accuracy.tenth_percentile), tail_note(accuracy)],
        ["average over domains", percent(accuracy.average), ""],
    ]
    for domain, value in zip(domains, accuracy.domains, strict=True):
        if value is not None:
            rows.append([f"  {domain}", percent(value), "worst" if value == accuracy.worst_domain else ""])
    return Table(title=title, header=["", "", ""], rows=rows, words_last=True)


def result_summary(result: RunResult) -> Table:
    """The test accuracy and the transferability statistics of one run."""
    spec, test = result.spec, result.test
    unseen = f", unseen {spec.unseen}" if spec.unseen else ""
    title = f"{spec.method} on {spec.dataset}{unseen}: test accuracy"
    table = accuracy_summary(title, test.pairs(), result.domains, result.classes)
    rows = [*table.rows]
    if result.raw:
        rows.append(["pair average, raw", percent(result.raw.test.pair_average), "the weights before averaging"])
    rows += [[f"{shot}-shot pairs", percent(value), ""] for shot, value in test.shots.items() if value is not None]
    for name, symbol in STATISTICS.items():
        value = number(getattr(result.transferability, name), 2)
        rows.append([f"transferability {symbol}", value, DISTANCES[symbol]])
    return replace(table, rows=rows)


def folds_summary(results: Sequence[RunResult]) -> Table:
    """One row per unseen domain, and their mean."""
    metrics = "accuracy", "class mean", "validation"
    table = fold_table(results).to_dict("records")
    rows = [[row["unseen"], *(number(row[metric]) for metric in metrics)] for row in table]
    header, mean = ["unseen", "accuracy", "class mean", "selected on"], {(len(results), j) for j in range(4)}
    return Table(title="accuracy on the unseen domain, %", header=header, rows=rows, emphasised=mean)
