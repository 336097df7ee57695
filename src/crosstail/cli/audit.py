"""crosstail audit: look at a data set before any training."""

import json
import shlex
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail.cli._options import named_values
from crosstail.cli._progress import progress_bar


def audit(
    source: Annotated[
        str,
        typer.Argument(
            help="A folder ROOT/<domain>/<class>/<image>, a .csv or .parquet manifest, an .npz file, hf:NAME, or a "
            "name of [b]crosstail list datasets[/]."
        ),
    ],
    labels: Annotated[
        list[str] | None,
        typer.Option(help="Label profile, once or per domain: uniform, forward:50, backward:50, step:10."),
    ] = None,
    column: Annotated[
        list[str] | None, typer.Option(help="A manifest's column, as [b]domain=site[/]; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of what is random in the data, such as the split.")] = 0,
    out: Annotated[Path | None, typer.Option(help="Also write a page, as an .html file that works offline.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
) -> None:
    """Count the pairs, compare the domains' labels, find duplicates and broken images, and say what to try.

    Example: [b]crosstail audit photos/ --out audit.html[/]
    """
    if out is not None and out.suffix.lower() not in (".html", ".htm"):
        raise ValueError(f"--out {out}: expected a name that ends in .html")

    from crosstail import data
    from crosstail.report.audit import audit as examine
    from crosstail.report.audit import recommend
    from crosstail.report.audit.inputs import ImageInputs
    from crosstail.report.audit.document import page, summary
    from crosstail.report.document import html, terminal

    dataset = data.load(source, labels=labels, seed=seed, columns=named_values("--column", column))
    many, few = data.shot_thresholds(source)
    with progress_bar(Console(stderr=True)) as progress:
        found = examine(dataset.plain(), many=many, few=few, progress=progress)
    if out is not None:
        html.save(page(found, dataset), out)
    if as_json:
        print(json.dumps(found.to_json()))
        return
    console = Console(highlight=False)
    terminal.show(summary(found), console)
    chosen = recommend(found)
    if chosen is not None:
        same = [
            *_repeated("--labels", labels),
            *_repeated("--column", column),
            *(["--data-seed", str(seed)] * (seed != 0)),
        ]
        broken = isinstance(found.inputs, ImageInputs) and found.inputs.broken
        same += ["--skip-broken"] * bool(broken)
        command = ["crosstail", "fit", source, *chosen.options.split(), *same, "--out", "run"]
        console.print(f"Next: {shlex.join(command)}", markup=False, soft_wrap=True)
    where = f"The page is in {out}." if out else "With --out audit.html there is a page with charts and pictures."
    console.print(where, markup=False, soft_wrap=True)


def _repeated(option: str, values: list[str] | None) -> list[str]:
    return [part for value in values or [] for part in (option, value)]
