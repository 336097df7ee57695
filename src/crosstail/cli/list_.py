"""crosstail list: the names that other verbs take."""

import json
from dataclasses import fields
from typing import Annotated, Any, Literal

from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from crosstail import discovery
from crosstail.cli._parameters import Json


def list_(
    kind: Annotated[Literal["algorithms", "datasets", "backbones"], Parameter(name="KIND")], /, *, as_json: Json = False
) -> None:
    """List the algorithms, data sets or backbones.

    Example: `crosstail list algorithms`

    Args:
        kind: What to list.
    """
    if kind == "algorithms":
        _list_algorithms(as_json)
        return
    rows = _datasets() if kind == "datasets" else _backbones()
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
        f"cost: passes over the batch per step, relative to erm. All take {' and '.join(sorted(common))}. Any of them "
        "combines with --second-stage, --average and boda+NAME; --json has defaults, search ranges and descriptions.",
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
    found = {name: discovery.find(package, name, "backbone").__doc__ or "" for name in discovery.names(package)}
    rows = [{"name": name, "what": text.strip().partition("\n")[0]} for name, text in found.items()]
    return [*rows, {"name": "timm:NAME", "what": "Any image model in timm, such as timm:vit_small_patch14_dinov2."}]
