"""A sweep as tables for the terminal: its progress, and the trials that were selected."""

from collections.abc import Iterator, Sequence

from crosstail.report.document.model import Table
from crosstail.report.wording import duration, percent, several
from crosstail.sweep.select import SeedSummary, SelectedTrial
from crosstail.sweep.status import MethodStatus

METRICS = {"pair_average": "pair average", "average": "average", "worst_domain": "worst domain"}


def selection_table(chosen: Sequence[SelectedTrial], summaries: Sequence[SeedSummary]) -> Table:
    """Per method the selected trial and its test accuracy, mean ± standard deviation over the seeds."""
    rows = []
    for choice, summary in zip(chosen, summaries, strict=True):
        cells = []
        for metric in METRICS:
            mean, deviation = summary.accuracy[metric]
            cells.append(percent(mean) + (f" ± {percent(deviation)}" if deviation is not None else ""))
        seeds = str(summary.seeds) if summary.seeds == summary.planned else f"{summary.seeds} of {summary.planned}"
        trial = "–" if choice.trial is None else str(choice.trial)
        rows.append([choice.method, trial, percent(choice.validation), *cells, seeds])
    title = "test accuracy of the best trial on validation, %"
    return Table(title=title, header=["method", "trial", "val", *METRICS.values(), "seeds"], rows=rows)


def selection_notes(chosen: Sequence[SelectedTrial]) -> Iterator[str]:
    """Trials that could not be selected from: missing or failed, with the reasons."""
    for choice in chosen:
        planned = choice.plan.trials
        if choice.missing:
            yield f"{choice.method}: {choice.missing} of {planned} trials are missing"
        if choice.failed:
            yield f"{choice.method}: {len(choice.failed)} of {planned} trials failed"
        for trial, failure in list(choice.failed.items())[:3]:
            yield f"  trial {trial}: {failure.kind}, {several(failure.attempts, 'attempt')}"
            yield from (f"    {line}" for line in failure.error[-3:])


def status_table(methods: Sequence[MethodStatus]) -> Table:
    """Runs per method, and in total."""
    names = "planned", "done", "running", "failed", "pruned"
    sums = {name: sum(getattr(row, name) for row in methods) for name in names}
    known = [row.remaining for row in methods if row.remaining is not None]
    total = MethodStatus(method="all", **sums, remaining=sum(known) if len(known) == len(methods) else None)
    rows = []
    for row in (*methods, total):
        counts = map(str, (row.running, row.failed, row.pruned))
        remaining = "–" if row.remaining is None else duration(row.remaining)
        rows.append([row.method, f"{row.done}/{row.planned}", *counts, remaining])
    header = ["method", "done", "running", "failed", "pruned", "remaining"]
    return Table(header=header, rows=rows, emphasised={(len(methods), j) for j in range(len(header))})
