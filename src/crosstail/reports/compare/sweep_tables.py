"""A sweep as tables for the terminal: its progress, and the trials that were selected."""

from collections.abc import Iterator, Sequence

from crosstail import discovery
from crosstail.metrics import find
from crosstail.reports.document.model import Table
from crosstail.reports.wording import KNOWN_PAIR_AVERAGE, TRACKS, duration, percent, selected_on, several
from crosstail.sweeps import rules
from crosstail.sweeps.outlook import Outlook
from crosstail.sweeps.select import SeedSummary, SelectedTrial, Spread
from crosstail.sweeps.status import MethodStatus

METRICS = {"pair_average": "pair average", "average": "average", "worst_domain": "worst domain"}


def selection_table(summaries: Sequence[SeedSummary]) -> Table:
    """Per method the selected trial and its test accuracy over the seeds; with dg, also on each unseen domain."""
    unseen, on = list(summaries[0].unseen), summaries[0].selected_on
    metrics = {"accuracy": "accuracy", "class_mean": "class mean"} if unseen else METRICS
    known = any(summary.known for summary in summaries)
    names = list(metrics.values())
    if known:
        names.insert(1, TRACKS[1])
    rule, rows = any(on == one.label for one in map(rules.find, discovery.names(rules.PACKAGE))), []
    for summary in summaries:
        cells = [_cell(summary.accuracy[metric]) for metric in metrics]
        of_domains = [summary.unseen[domain] for domain in unseen]
        cells += [_cell(spread) if len(unseen) < 3 else percent(spread[0]) for spread in of_domains]
        if known:  # the same as without for a method that ignores the domain
            cells.insert(1, _cell(summary.known or summary.accuracy["pair_average"]))
        seeds = str(summary.seeds) if summary.seeds == summary.planned else f"{summary.seeds} of {summary.planned}"
        trial = [] if unseen else ["–" if summary.trial is None else str(summary.trial)]
        shown = find("accuracy" if rule else on).shown(summary.validation, unit=False)
        rows.append([summary.method, *trial, shown, *cells, seeds])
    header = ["method", *["trial"] * (not unseen), "val", *names, *unseen, "seeds"]
    title = "accuracy on the unseen domain" if unseen else "test accuracy"
    notes = [KNOWN_PAIR_AVERAGE] * known + ["The errors of each domain are in --json."] * (len(unseen) > 2)
    if rule:
        notes.append(f"Selected by: {on}.")
    elif on not in ("pair_average", "average"):
        notes.append(f"Val: the {selected_on(on)} on validation, which was selected on.")
    best = "best trial and step" if rule else "best trial on validation"
    title += f" of the {best}, % (± {summaries[0].spread} over the seeds)"
    return Table(title=title, header=header, rows=rows, note=" ".join(notes))


def _cell(spread: Spread) -> str:
    mean, error = spread
    return percent(mean) + (f" ± {percent(error)}" if error is not None else "")


def selection_notes(chosen: Sequence[SelectedTrial]) -> Iterator[str]:
    """Trials that could not be selected from: missing or failed, with the reasons."""
    for choice in chosen:
        planned = choice.plan.trials
        if choice.missing:
            yield f"{choice.name}: {choice.missing} of {planned} trials are missing"
        if choice.failed:
            yield f"{choice.name}: {len(choice.failed)} of {planned} trials failed"
        for trial, failure in list(choice.failed.items())[:3]:
            yield f"  trial {trial}: {failure.kind}, {several(failure.attempts, 'attempt')}"
            yield from (f"    {line}" for line in failure.error[-3:])


def status_table(methods: Sequence[MethodStatus], race: Outlook | None = None) -> Table:
    """Runs per method, and in total; the time that is left of a race is by its own outlook, with the rounds to come."""
    names = "planned", "done", "running", "failed"
    sums = {name: sum(getattr(row, name) for row in methods) for name in names}
    known = [row.remaining for row in methods if row.remaining is not None]
    left = race.left if race else sum(known) if len(known) == len(methods) else None
    total = MethodStatus(method="all", **sums, remaining=left)
    rows = []
    for row in (*methods, total):
        remaining = "–" if row.remaining is None else duration(row.remaining)
        rows.append([row.method, f"{row.done}/{row.planned}", str(row.running), str(row.failed), remaining])
    header = ["method", "done", "running", "failed", "remaining"]
    note = f"The race is in {race.round}; all that remains of it takes about {duration(race.left)}." if race else ""
    return Table(header=header, rows=rows, note=note, emphasised={(len(methods), j) for j in range(len(header))})
