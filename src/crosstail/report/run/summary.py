"""The metrics of a run as one table for the terminal."""

from collections.abc import Sequence
from dataclasses import replace

from crosstail.metrics import PairAccuracy
from crosstail.report.document.model import Table
from crosstail.report.run.tables import DISTANCES, STATISTICS, cross_validation_table, fold_table
from crosstail.report.wording import estimate_note, number, percent, tail_note, worst_pair
from crosstail.training import RunSpec
from crosstail.training.result import RunResult, SplitAccuracy, mean_counts, pooled_accuracy


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
    spec, test = result.spec, result.estimate or result.test
    title = f"{_subject(spec)}: {'estimated' if result.estimate else 'test'} accuracy"
    table = accuracy_summary(title, test.pairs(), result.domains, result.classes)
    rows = [*table.rows]
    if result.raw and not result.estimate:
        rows.append(["pair average, raw", percent(result.raw.test.pair_average), "the weights before averaging"])
    rows += _shots(test)
    for name, symbol in STATISTICS.items():
        value = number(getattr(result.transferability, name), 2)
        rows.append([f"transferability {symbol}", value, DISTANCES[symbol]])
    return replace(table, rows=rows, note=estimate_note(result))


def _subject(spec: RunSpec) -> str:
    what = f"{spec.method} on {spec.dataset}"
    return f"{what}, {spec.part}" if spec.part else what


def _shots(accuracy: SplitAccuracy) -> list[list[str]]:
    return [[f"{shot}-shot pairs", percent(value), ""] for shot, value in accuracy.shots.items() if value is not None]


def folds_summary(results: Sequence[RunResult]) -> list[Table]:
    """With dg the unseen domains and their mean; with folds the accuracy on all test samples, and each fold."""
    first = results[0]
    if first.spec.protocol == "dg":
        return [_unseen_summary(results)]
    accuracy = pooled_accuracy(results, mean_counts(results))
    title = f"{_subject(replace(first.spec, fold=None))}, {len(results)} folds pooled: test accuracy"
    pooled = accuracy_summary(title, accuracy.pairs(), first.domains, first.classes)
    rows = [
        [str(row["fold"]), number(row["tested"], 0, ",").strip("–")]
        + [number(row[metric]) for metric in ("pair average", "average")]
        + ["" if row["fold"] == "pooled" else number(row["validation"])]
        for row in cross_validation_table(results).to_dict("records")
    ]
    header = ["fold", "tested", "pair average", "average", "selected on"]
    emphasised = {(len(results), j) for j in range(len(header))}
    folds = Table(title="each fold, %", header=header, rows=rows, emphasised=emphasised)
    return [replace(pooled, rows=[*pooled.rows, *_shots(accuracy)]), folds]


def _unseen_summary(results: Sequence[RunResult]) -> Table:
    """One row per unseen domain, and their mean."""
    metrics = "accuracy", "class mean", "validation"
    table = fold_table(results).to_dict("records")
    rows = [[row["unseen"], *(number(row[metric]) for metric in metrics)] for row in table]
    header, mean = ["unseen", "accuracy", "class mean", "selected on"], {(len(results), j) for j in range(4)}
    return Table(title="accuracy on the unseen domain, %", header=header, rows=rows, emphasised=mean)
