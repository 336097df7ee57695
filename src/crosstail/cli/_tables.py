"""Results as tables for the terminal."""

from typing import Any

from rich.table import Table

from crosstail.metrics import PairAccuracy


def percent(value: float | None) -> str:
    """An accuracy, or a dash where there is none.

    >>> percent(0.4567), percent(None)
    ('45.7', '–')
    """
    return "–" if value is None else f"{100 * value:.1f}"


def result_table(result: dict[str, Any]) -> Table:
    """The test figures of one run, within 80 columns."""
    test, transfer = result["test"], result["transferability"]
    accuracy = PairAccuracy.from_json(test)
    interval = accuracy.interval("pair_average")
    table = Table(title=f"{result['spec']['algorithm']} on {result['spec']['dataset']}: test accuracy, %", box=None)
    table.add_column("")
    table.add_column("", justify="right")
    table.add_column("", style="dim")
    spread = f"95 % interval {percent(interval[0])} to {percent(interval[1])}" if interval else ""
    worst = accuracy.worst_pair_index
    name = f"{result['domains'][worst[0]]} / {result['classes'][worst[1]]}" if worst else ""
    table.add_row("pair average", percent(test["pair_average"]), spread)
    table.add_row("worst pair", percent(test["worst_pair"]), name)
    table.add_row("average over domains", percent(test["average"]), "")
    table.add_row("worst domain", percent(test["worst_domain"]), "")
    for shot, value in test["shots"].items():
        table.add_row(f"{shot}-shot pairs", percent(value), "")
    for symbol, key, meaning in (
        ("α", "alpha", "same class, other domain: small is good"),
        ("β", "beta", "other class, same domain: large is good"),
        ("γ", "gamma", "other class, other domain: large is good"),
    ):
        value = transfer[key]
        table.add_row(f"transferability {symbol}", "–" if value is None else f"{value:.2f}", meaning)
    return table
