"""crosstail export: a model as one file for other programs."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from rich.console import Console

from crosstail.cli._checks import check_prior
from crosstail.cli._next import say_all
from crosstail.cli._progress import progress_bar
from crosstail.cli._verb import Json, Run, described, import_torch
from crosstail.training.existing import existing_run


@described
def export(
    run: Run,
    /,
    *,
    out: Path | None = None,
    format: Literal["onnx", "torch"] = "onnx",
    site: str | None = None,
    prior: str | None = None,
    coverage: float | None = None,
    per: Literal["all", "site", "class", "pair"] = "pair",
    trust: bool = False,
    as_json: Json = False,
) -> None:
    """Example: `crosstail export run --coverage 0.9 --out model.onnx`

    Args:
        out: File to write; FILE.json beside it describes inputs and outputs, FILE.md is a model card. Without it,
            show what a file would need on this machine, for each format: speed, memory and size."""
    existing_run(run)
    check_prior(prior)
    import_torch()

    from crosstail.prediction.export import Differs
    from crosstail.reports.document import terminal
    from crosstail.reports.document.model import Table
    from crosstail.reports.wording import number
    from crosstail.workflows.export import export, needs

    console = Console(stderr=True, markup=False)
    how: dict[str, Any] = {"site": site, "prior": prior, "coverage": coverage, "per": per}
    try:
        with progress_bar(console) as progress:
            measured = needs(run, trust=trust, progress=progress) if out is None else {}
            found = export(run, out=out, format=format, **how, trust=trust, progress=progress) if out else None
    except Differs as error:
        console.print(f"error: {error}")
        raise SystemExit(1) from None
    if found is None:
        if as_json:
            print(json.dumps({name: asdict(need) for name, need in measured.items()}))
            return
        header = ["--format", "inputs per second", "memory, MiB", "size, MB"]
        rows = [
            [name, number(need.per_second), number(need.memory, 0), number(need.size)]
            for name, need in measured.items()
        ]
        note = "On this machine, with all else that runs on it: a batch of 16 random inputs again and again."
        terminal.show([Table(header=header, rows=rows, note=note)], Console(markup=False))
        return
    say_all(console, "note", found.notes)
    if as_json:
        print(json.dumps(asdict(found.check)))
        return
    difference = f"probabilities that differ by at most {found.check.largest_difference:.1g}"
    size = f"{out}: {found.out.stat().st_size / 1e6:.1f} MB, described in {out}.md"
    compared = f"On {found.check.samples} of {found.check.inputs}, it predicts the same classes as the run"
    Console().print(f"{size}\n{compared}, and {difference}.", markup=False, highlight=False, soft_wrap=True)
