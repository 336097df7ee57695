"""The metrics of a run as one table for the terminal."""

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from crosstail.reports.document.model import Table, records_table
from crosstail.reports.run.tables import cross_validation_table, fold_table
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.unseen import expectation, seen_table
from crosstail.reports.wording import (
    KNOWN_PAIR_AVERAGE,
    TRACKS,
    either,
    estimate_note,
    percent,
    shot_sizes,
    shown,
    tail_note,
    worst_pair,
)
from crosstail.training import RunSpec
from crosstail.training.result import RunResult

Row = list[str]  # name, value and note; with two tracks, name, both values and note


def accuracy_summary(title: str, tested: Tested) -> Table:
    """The accuracy of one model on one set of samples, with the domain known beside it if that differs."""
    return _summary(title, *_tracks(tested), tested.tracks_note)


def _tracks(tested: Tested, shots: bool = False) -> tuple[list[Row], list[Row] | None]:
    """The metrics with the domain unknown, and known if they differ; with `shots`, also by shot group."""

    def rows(known: bool) -> list[Row]:
        accuracy, apart = tested.told(known), tested.has_known  # then the interval has a row of its own
        interval = accuracy.interval("pair_average")
        ends = f"{percent(interval[0])} to {percent(interval[1])}" if interval else ""
        found = [
            ["pair average, %", percent(accuracy.pair_average), f"95 % interval {ends}" if ends and not apart else ""],
            *[["  95 % interval", ends, ""]] * bool(ends and apart),
            ["worst pair", percent(accuracy.worst_pair), worst_pair(accuracy, tested.domains, tested.classes)],
            ["10th percentile", percent(accuracy.tail), tail_note(accuracy)],
            ["average over domains", percent(accuracy.average), ""],
        ]
        for domain, value in zip(tested.domains, accuracy.domains, strict=True):
            if value is not None:
                found.append([f"  {domain}", percent(value), "worst" if value == accuracy.worst_domain else ""])
        return found + (_shots(accuracy.shots(tested.counts, *tested.shots), tested.shots) if shots else [])

    return rows(known=False), rows(known=True) if tested.has_known else None


def result_summary(result: RunResult) -> Table:
    """The test accuracy of one run."""
    test, tested = result.tested(), Tested.of_results([result])
    rows, others = _tracks(tested)
    if result.raw and not result.estimate:
        rows.append(["pair average, raw", percent(result.raw.test.pair_average), "the weights before averaging"])
    rows += _shots(test.shots, result.shots)
    if others is not None:
        others += _shots(result.tested(known=True).shots, result.shots)
    kind = "estimated" if result.estimate else "test"
    title = f"{_subject(result.spec)}: {kind} accuracy; a pair is one class in one domain"
    return _summary(title, rows, others, " ".join(filter(None, (tested.tracks_note, estimate_note(result)))))


def _summary(title: str, rows: list[Row], known: list[Row] | None, note: str) -> Table:
    """One track as it is, or two side by side; what only the first has is the same for both."""
    if known is None:
        return Table(title=title, header=["", "", ""], rows=rows, words_last=True, note=note)
    others = {name: rest for name, *rest in known}
    both = []
    for name, value, words in rows:
        other, its_words = others.get(name, ("", words))
        both.append([name, value, other, either(words, its_words)])
    return Table(title=title, header=["", *TRACKS, ""], rows=both, words_last=True, note=note)


def _subject(spec: RunSpec) -> str:
    what = f"{spec.method} on {spec.dataset}"
    return f"{what}, {spec.part}" if spec.part else what


def _shots(values: dict[str, float | None], shots: tuple[int, int]) -> list[Row]:
    sizes = shot_sizes(*shots)
    return [[f"{shot}-shot pairs", percent(value), sizes[shot]] for shot, value in values.items() if value is not None]


def folds_summary(results: Sequence[RunResult]) -> list[Table]:
    """With dg the unseen domains and their mean; with folds the accuracy on all test samples, and each fold."""
    first, last = results[0], {len(results)}
    if first.spec.unseen_domains:
        columns = {"unseen": itemgetter("unseen"), "accuracy": shown("accuracy"), "class mean": shown("class mean")}
        columns["selected on"] = shown("validation")
        title, note = "accuracy on the unseen domain, %", expectation(seen_table(results))
        return [records_table(fold_table(results).to_dict("records"), columns, last, title=title, note=note)]
    title = f"{_subject(replace(first.spec, fold=None))}, {len(results)} folds pooled: test accuracy"
    tested = Tested.of_results(results)
    two, (pooled, others) = tested.has_known, _tracks(tested, shots=True)
    columns = {"fold": lambda row: str(row["fold"]), "tested": shown("tested", 0, ",")}
    columns |= {"pair average": shown("pair average"), **({TRACKS[1]: shown("known")} if two else {})}
    columns |= {"average": shown("average"), "selected on": shown("validation")}
    records, note = cross_validation_table(results).to_dict("records"), KNOWN_PAIR_AVERAGE if two else ""
    folds = records_table(records, columns, last, title="each fold, %", note=note)
    return [_summary(title, pooled, others, tested.tracks_note), folds]
