"""Results as tables for the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

if TYPE_CHECKING:
    from crosstail.metrics import PairAccuracy
    from crosstail.training.result import RunResult


def percent(value: float | None) -> str:
    """An accuracy, or a dash where there is none.

    >>> percent(0.4567), percent(None)
    ('45.7', '–')
    """
    return "–" if value is None else f"{100 * value:.1f}"


def accuracy_table(title: str, accuracy: "PairAccuracy", domains: Sequence[str], classes: Sequence[str]) -> Table:
    """The figures of one model on one set of samples, within 80 columns."""
    table = Table(title=escape(title), box=None, title_justify="left", show_header=False)
    table.add_column("", no_wrap=True)
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("", style="dim")
    interval = accuracy.interval("pair_average")
    spread = f"95 % interval {percent(interval[0])} to {percent(interval[1])}" if interval else ""
    worst = accuracy.worst_pair_index
    worst_pair = escape(f"{domains[worst[0]]} / {classes[worst[1]]}") if worst else ""
    table.add_row("pair average, %", percent(accuracy.pair_average), spread)
    table.add_row("worst pair", percent(accuracy.worst_pair), worst_pair)
    table.add_row("average over domains", percent(accuracy.average), "")
    for domain, value in zip(domains, accuracy.domains, strict=True):
        if value is not None:
            table.add_row(f"  {escape(domain)}", percent(value), "worst" if value == accuracy.worst_domain else "")
    return table


def result_table(result: "RunResult") -> Table:
    """The test figures of one run, within 80 columns."""
    spec, test = result.spec, result.test
    title = f"{spec.method} on {spec.dataset}" + (f", unseen {spec.unseen}" if spec.unseen else "")
    table = accuracy_table(f"{title}: test accuracy", test.pairs(), result.domains, result.classes)
    if result.raw:
        table.add_row("pair average, not averaged", percent(result.raw.test.pair_average), "the raw weights")
    for shot, value in test.shots.items():
        if value is not None:
            table.add_row(f"{shot}-shot pairs", percent(value), "")
    for symbol, key, meaning in (
        ("α", "alpha", "same class, other domain: small is good"),
        ("β", "beta", "other class, same domain: large is good"),
        ("γ", "gamma", "other class, other domain: large is good"),
    ):
        value = getattr(result.transferability, key)
        table.add_row(f"transferability {symbol}", "–" if value is None else f"{value:.2f}", meaning)
    return table


def folds_table(results: Sequence["RunResult"]) -> Table:
    """One row per unseen domain, and their mean."""
    table = Table(title="accuracy on the unseen domain, %", box=None, title_justify="left")
    for name in ("unseen", "accuracy", "pair average", "selected on"):
        table.add_column(name, justify="left" if name == "unseen" else "right")
    rows = [[r.test.average or 0.0, r.test.pair_average or 0.0, r.validation.average or 0.0] for r in results]
    for result, row in zip(results, rows, strict=True):
        table.add_row(escape(str(result.spec.unseen)), *map(percent, row))
    table.add_row("mean", *(percent(sum(column) / len(column)) for column in zip(*rows, strict=True)), style="bold")
    return table
