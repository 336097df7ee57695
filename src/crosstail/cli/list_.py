"""crosstail list: the names that other verbs take."""

import json
from dataclasses import asdict
from itertools import groupby
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from crosstail import discovery, metrics
from crosstail.cli._sources import (
    ALGORITHMS,
    BENCHMARKS,
    SECOND_STAGES,
    algorithm_source,
    data_sheet,
    second_stage_kind,
)
from crosstail.cli._verb import Json
from crosstail.data import protocols, sources
from crosstail.literature import FAMILIES, cited
from crosstail.sweeps import rules

if TYPE_CHECKING:
    from crosstail.reports.document.model import Block


def list_(
    kind: Annotated[
        Literal["algorithms", "second-stages", "datasets", "sources", "protocols", "backbones", "metrics", "rules"],
        Parameter(name="KIND"),
    ],
    name: Annotated[str | None, Parameter(name="NAME")] = None,
    /,
    *,
    as_json: Json = False,
) -> None:
    """List algorithms, second stages, data sets, sources, protocols, backbones, metrics or rules, or describe one.

    Example: `crosstail list algorithms boda`

    Args:
        kind: What to list.
        name: An algorithm, a preset such as boda@reference, a combination such as bsoftmax+coral, or a backbone.
    """
    if name and kind not in ("algorithms", "backbones"):
        raise ValueError(f"details are shown for algorithms and backbones only: crosstail list {kind}")
    from crosstail.reports.document import terminal

    if kind == "algorithms" and not name and not as_json:
        terminal.show(_algorithm_table())
        return
    rows = _cuts(name) if name and kind == "backbones" else _rows(kind, name)
    if as_json:
        print(json.dumps(rows))
    elif name and kind == "backbones":
        terminal.show(_cut_table(rows))
    else:
        terminal.show([block for row in rows for block in _description(row)] if name else [_table(rows)])


def _rows(kind: str, name: str | None) -> list[dict[str, Any]]:
    """Everything of a kind, or an algorithm and its presets."""
    if kind == "algorithms":
        from crosstail import algorithms
        from crosstail.algorithms._catalogue import entry, preset_entries

        first = entry(name, algorithms.find(name)) if name else None
        return [asdict(each) for each in ((first, *preset_entries(first)) if first else algorithms.catalogue())]
    if kind in ("second-stages", "datasets"):
        return _second_stages() if kind == "second-stages" else _datasets()
    packages = {"sources": sources.PACKAGE, "protocols": protocols.PACKAGE, "metrics": metrics.PACKAGE}
    packages["rules"] = rules.PACKAGE
    package = packages.get(kind, "crosstail.backbones")
    rows = [{"name": n, "what": discovery.docstring(package, n).partition("\n")[0]} for n in discovery.names(package)]
    if kind == "backbones":
        rows.append({"name": "timm:NAME", "what": "Any image model in timm, such as timm:vit_small_patch14_dinov2."})
        rows.append({"name": "hf-hub:ORG/NAME", "what": "A model on the Hugging Face Hub in timm's format."})
        rows.append({"name": "open_clip:NAME", "what": "The image tower of a CLIP, from --weights FILE."})
    return rows


def _cuts(name: str) -> list[dict[str, Any]]:
    """Where a pretrained backbone can be cut, and what is kept of a photo there."""
    from crosstail import backbones

    network = backbones.pretrained(name)
    if network is None:
        raise ValueError(f"{name} has no pretrained weights, so all of it is trained: it has no cuts to list")
    built = network.build((3, network.size, network.size), backbones.RANDOM, None)
    return [
        {"tune": f"last:{k}" if k > 1 else "last", "behind": cut.module, "shape": cut.shape, "bytes": cut.size}
        for k, cut in enumerate(built.cuts, 1)
    ]


def _cut_table(rows: list[dict[str, Any]]) -> "list[Block]":
    from crosstail.reports.document.model import Table, Text

    cells = [
        [row["tune"], row["behind"], " × ".join(map(str, row["shape"])), f"{row['bytes'] / 1e3:,.0f} KB"]
        for row in rows
    ]
    note = "What follows a cut is tuned; the activations there are computed once per photo and kept in half precision."
    return [Table(header=["--tune", "cut behind", "activations", "per photo"], rows=cells), Text(note, dim=True)]


def _short(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _description(row: dict[str, Any]) -> "list[Block]":
    from crosstail.reports.document.model import Code, Heading, Item, Items, Table, Text

    hparams = row["hyperparameters"]
    meanings = [f"{h['meaning']} ({h['search']})" if h["search"] else h["meaning"] for h in hparams]
    cells = [[h["name"], _short(h["default"]), meaning] for h, meaning in zip(hparams, meanings, strict=True)]
    blocks: list[Block] = [Heading(row["name"]), Text(f"{row['what']} ({row['paper']}, {row['year']})")]
    blocks.append(Table(header=["hyperparameter", "default", "meaning (search range)"], rows=cells, words_last=True))
    if row["differs"]:
        blocks += [Text("Differs from the paper:"), Items([Item(words) for words in row["differs"]])]
    return [*blocks, Code(f"crosstail fit DATA --algorithm {row['name']} --out run")]


def _table(rows: list[dict[str, Any]]) -> "Block":
    """Name and description, with any other fields below it."""
    from crosstail.reports.document.model import Table

    cells = []
    for row in rows:
        name, what, *_ = row.values()
        more = [f"{key}: {', '.join(v) if isinstance(v, list) else v}" for key, v in list(row.items())[2:]]
        cells.append([name, "\n".join([what, *more])])
    return Table(header=["name", "what"], rows=cells, words_last=True, emphasised={(i, 0) for i in range(len(cells))})


def _algorithm_table() -> "list[Block]":
    """Names, costs and papers by family, from the files."""
    from crosstail.reports.document.model import Table, Text

    sources = [algorithm_source(name) for name in discovery.names(ALGORITHMS)]
    papers = {source.name: cited(source.name, source.docstring) for source in sources}
    rows: list[list[str]] = []
    families: set[int] = set()
    ordered = sorted(sources, key=lambda source: (FAMILIES.index(source.family), papers[source.name][2], source.name))
    for family, members in groupby(ordered, key=lambda source: source.family):
        families.add(len(rows))
        rows.append([family, "", ""])
        for source in members:
            what, paper, year = papers[source.name]
            rows.append([source.name, f"{source.passes:g}", f"{what.partition(': ')[2] or what} ({paper}, {year})"])
    bold = {(i, 0) for i in range(len(rows)) if i not in families}
    note = (
        "cost: passes over the batch per step, relative to erm. Any of them combines with a second stage (`crosstail "
        "list second-stages`), --average and others, as in bsoftmax+coral. `crosstail list algorithms NAME` describes "
        "one with its hyperparameters and presets."
    )
    header = ["name", "cost", "what (paper)"]
    return [Table(header=header, rows=rows, words_last=True, faint=families, emphasised=bold), Text(note, dim=True)]


def _second_stages() -> list[dict[str, Any]]:
    """Trained ones first, then by year."""
    rows = []
    for name in discovery.names(SECOND_STAGES):
        what, paper, year = cited(name, discovery.docstring(SECOND_STAGES, name))
        kind = second_stage_kind(name)
        row = {"name": name, "what": f"{what}.", "paper": f"{paper}, {year}", "kind": kind}
        rows.append(((kind != "trained", year, name), row))
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _datasets() -> list[dict[str, Any]]:
    rows = []
    for sheet in map(data_sheet, discovery.names(BENCHMARKS)):
        about = {"domains": sheet["domains"], "classes": len(sheet["classes"]), "licence": sheet["licence"]}
        rows.append({"name": sheet["name"], "what": sheet["summary"], **about})
    return rows
