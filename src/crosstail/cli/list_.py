"""crosstail list: what there is to choose from."""

import json
from dataclasses import fields
from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from crosstail import discovery


class Kind(StrEnum):
    """What can be listed."""

    algorithms = "algorithms"
    datasets = "datasets"
    backbones = "backbones"


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the algorithms, data sets or backbones.

    Example: [b]crosstail list algorithms[/]
    """
    if kind is Kind.algorithms:
        _list_algorithms(as_json)
        return
    rows = {Kind.datasets: _datasets, Kind.backbones: _backbones}[kind]()
    if as_json:
        print(json.dumps(rows))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in rows[0]:
        table.add_column(column, no_wrap=column == "name", style="bold" if column == "name" else None)
    for row in rows:
        table.add_row(*(", ".join(value) if isinstance(value, list) else str(value) for value in row.values()))
    Console().print(table)


def _list_algorithms(as_json: bool) -> None:
    from crosstail.algorithms import Algorithm, catalogue

    entries = catalogue()
    if as_json:
        print(json.dumps([entry.to_json() for entry in entries]))
        return
    common = {f.name for f in fields(Algorithm.Hparams)}
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("name", no_wrap=True, style="bold")
    table.add_column("paper")
    table.add_column("cost", justify="right", no_wrap=True)
    table.add_column("hyperparameters", overflow="fold")
    family = ""
    for entry in entries:
        if entry.family != family:
            family = entry.family
            table.add_row(f"[italic dim]{family}[/]")
        own = [h["name"] for h in entry.hyperparameters if h["name"] not in common]
        table.add_row(entry.name, f"{entry.paper}, {entry.year}", f"{entry.passes:g}", ", ".join(own))
    console = Console()
    console.print(table)
    console.print(
        f"cost: passes over the batch in a step, with erm at 1. All have {' and '.join(sorted(common))}. "
        "Add --decouple or --average to any of them, boda+ before one; --json tells defaults, ranges and meanings.",
        style="dim",
        highlight=False,
    )


def _datasets() -> list[dict[str, Any]]:
    package = "crosstail.data.benchmarks"
    sheets = [discovery.find(package, name, "data set").SHEET for name in discovery.names(package)]
    return [
        {"name": s.name, "what": s.summary, "domains": list(s.domains), "classes": len(s.classes), "licence": s.licence}
        for s in sheets
    ]


def _backbones() -> list[dict[str, Any]]:
    package = "crosstail.backbones"
    own = [
        {"name": name, "what": _sentence(discovery.find(package, name, "backbone").__doc__)}
        for name in discovery.names(package)
    ]
    return [*own, {"name": "timm:NAME", "what": "Any image model of timm, such as timm:vit_small_patch14_dinov2."}]


def _sentence(text: str | None) -> str:
    return (text or "").strip().splitlines()[0]
