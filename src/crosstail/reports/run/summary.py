"""The metrics of a run as one table for the terminal."""

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter

from crosstail.reports.document.model import Columns, Table, records_table
from crosstail.reports.run.tables import cross_validation_table, fold_table, headline
from crosstail.reports.run.tested import Tested
from crosstail.reports.run.unseen import expectation, seen_table
from crosstail.reports.run.verdict import ends
from crosstail.reports.wording import (
    KNOWN_PAIR_AVERAGE,
    TRACKS,
    both_ends,
    either,
    estimate_note,
    number,
    percent,
    shown,
)
from crosstail.training import RunSpec
from crosstail.training.result import RunResult

Row = list[str]  # name, value and note; with two tracks, name, both values and note


def accuracy_summary(title: str, tested: Tested) -> Table:
    """The accuracy of one model on one set of samples, with the domain known beside it if that differs."""
    return _summary(title, *_tracks(tested), tested.tracks_note)


def _tracks(tested: Tested) -> tuple[list[Row], list[Row] | None]:
    """The metrics with the domain unknown, and known if they differ."""
    return _rows(tested, known=False), _rows(tested, known=True) if tested.has_known else None


def _rows(tested: Tested, known: bool) -> list[Row]:
    """The headline, with every domain below the average over them."""
    accuracy, rows = tested.told(known), []
    for metric, row in headline(tested, known).items():
        note = "" if metric == "average over domains" else ends(row) if metric == "pair average" else row["what"]
        if metric == "pair average" and tested.has_known:  # whose notes are of both tracks
            rows += [["pair average, %", number(row["value"]), ""], ["  95 % interval", both_ends(row), ""]]
        elif metric != "worst domain":
            rows.append([metric + ", %" * (metric == "pair average"), number(row["value"]), note])
        if metric == "average over domains":
            for domain, value in zip(tested.domains, accuracy.domains, strict=True):
                worst = "worst" if value == accuracy.worst_domain else ""
                rows += [[f"  {domain}", percent(value), worst]] * (value is not None)
    return rows


def result_summary(result: RunResult) -> Table:
    """The test accuracy of one run."""
    tested = Tested.of_results([result])
    rows, others = _tracks(tested)
    untested = "" if rows else "There are no test samples."
    if result.raw and not result.estimate:
        rows.append(["pair average, raw", percent(result.raw.test.pair_average), "the weights before averaging"])
    kind = "estimated" if result.estimate else "test"
    title = f"{_subject(result.spec)}: {kind} accuracy; a pair is one class in one domain"
    return _summary(title, rows, others, " ".join(filter(None, (untested, tested.tracks_note, estimate_note(result)))))


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


def folds_summary(results: Sequence[RunResult]) -> list[Table]:
    """With dg the unseen domains and their mean; with folds the accuracy on all test samples, and each fold."""
    first, last = results[0], {len(results)}
    if first.spec.unseen_domains:
        columns: Columns = {
            "unseen": itemgetter("unseen"),
            "accuracy": shown("accuracy"),
            "class mean": shown("class mean"),
        }
        columns["selected on"] = shown("validation")
        title, note = "accuracy on the unseen domain, %", expectation(seen_table(results))
        return [records_table(fold_table(results).to_dict("records"), columns, last, title=title, note=note)]
    title = f"{_subject(replace(first.spec, fold=None))}, {len(results)} folds pooled: test accuracy"
    tested = Tested.of_results(results)
    two, (pooled, others) = tested.has_known, _tracks(tested)
    columns = {"fold": lambda row: str(row["fold"]), "tested": shown("tested", 0, ",")}
    columns |= {"pair average": shown("pair average"), **({TRACKS[1]: shown("known")} if two else {})}
    columns |= {"average": shown("average"), "selected on": shown("validation")}
    records, note = cross_validation_table(results).to_dict("records"), KNOWN_PAIR_AVERAGE if two else ""
    folds = records_table(records, columns, last, title="each fold, %", note=note)
    return [_summary(title, pooled, others, tested.tracks_note), folds]
