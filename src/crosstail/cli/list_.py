"""crosstail list: the names that other verbs take."""

import json
from dataclasses import fields
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from crosstail import discovery
from crosstail.cli._parameters import Json

if TYPE_CHECKING:
    from crosstail.report.document.model import Block


def list_(
    kind: Annotated[Literal["algorithms", "datasets", "backbones"], Parameter(name="KIND")], /, *, as_json: Json = False
) -> None:
    """List the algorithms, data sets or backbones.

    Example: `crosstail list algorithms`

    Args:
        kind: What to list.
    """
    rows = {"algorithms": _algorithms, "datasets": _datasets, "backbones": _backbones}[kind]()
    if as_json:
        print(json.dumps(rows))
        return
    from crosstail.report.document import terminal

    terminal.show(_algorithm_table(rows) if kind == "algorithms" else [_table(rows)])


def _table(rows: list[dict[str, Any]]) -> "Block":
    """Name and description, with any other fields below it."""
    from crosstail.report.document.model import Table

    cells = []
    for row in rows:
        name, what, *_ = row.values()
        more = [f"{key}: {', '.join(v) if isinstance(v, list) else v}" for key, v in list(row.items())[2:]]
        cells.append([name, "\n".join([what, *more])])
    return Table(header=["name", "what"], rows=cells, words_last=True, emphasised={(i, 0) for i in range(len(cells))})


def _algorithm_table(entries: list[dict[str, Any]]) -> "list[Block]":
    from crosstail.algorithms import Algorithm
    from crosstail.report.document.model import Table, Text

    common = [f.name for f in fields(Algorithm.Hparams)]
    rows: list[list[str]] = []
    families: set[int] = set()
    for family, members in groupby(entries, key=lambda entry: entry["family"]):
        families.add(len(rows))
        rows.append([family, "", ""])
        for entry in members:
            own = ", ".join(h["name"] for h in entry["hyperparameters"] if h["name"] not in common)
            paper = f"{entry['paper']}, {entry['year']}"
            rows.append([entry["name"], f"{entry['passes']:g}", f"{paper}: {own}" if own else paper])
    bold = {(i, 0) for i in range(len(rows)) if i not in families}
    header = ["name", "cost", "paper: hyperparameters"]
    note = (
        f"cost: passes over the batch per step, relative to erm. All take {', '.join(common)}. Any of them combines "
        "with --second-stage, --average and boda+NAME; --json has defaults, search ranges and descriptions."
    )
    return [Table(header=header, rows=rows, words_last=True, faint=families, emphasised=bold), Text(note, dim=True)]


def _algorithms() -> list[dict[str, Any]]:
    from crosstail.algorithms import catalogue

    return [entry.to_json() for entry in catalogue()]


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
