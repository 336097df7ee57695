"""crosstail select: the hyperparameters that are best on validation."""

from pathlib import Path

import msgspec
from rich.console import Console

from crosstail.cli._checks import require_output
from crosstail.cli._verb import Json, Sweep, described


@described
def select(
    folder: Sweep,
    /,
    *,
    out: Path | None = None,
    select_on: str | None = None,
    rule: str | None = None,
    as_json: Json = False,
) -> None:
    """Example: `crosstail select sweep --out best.json`"""
    from crosstail.reports.compare.sweep_tables import selection_notes, selection_table
    from crosstail.reports.document import terminal
    from crosstail.workflows.select import select

    if out is not None and out != folder / "selected.json":
        require_output(out, (), ".json")
    found = select(folder, out=out, select_on=select_on, rule=rule)
    if as_json:
        print(msgspec.json.encode(found.to_json()).decode())
        return
    console = Console(highlight=False, markup=False)
    terminal.show([selection_table(found.rows)], console)
    for method, hparams in found.hparams.items():
        words = ", ".join(f"{name} {value}" for name, value in hparams.items())
        console.print(f"{method}: {words or 'defaults'}")
    for note in selection_notes(found.chosen):
        console.print(note)
    console.print(f"written to {found.file}")
