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
    rows = {Kind.algorithms: _algorithms, Kind.datasets: _datasets, Kind.backbones: _backbones}[kind]()
    if as_json:
        print(json.dumps(rows))
        return
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in rows[0]:
        table.add_column(column, no_wrap=column == "name", style="bold" if column == "name" else None)
    for row in rows:
        table.add_row(*(", ".join(value) if isinstance(value, list) else str(value) for value in row.values()))
    Console().print(table)


def _algorithms() -> list[dict[str, Any]]:
    from crosstail import algorithms

    found = [(name, algorithms.find(name)) for name in discovery.names("crosstail.algorithms")]
    return [
        {"name": name, "what": _sentence(kind.__doc__), "hyperparameters": [f.name for f in fields(kind.Hparams)]}
        for name, kind in found
    ]


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
