"""crosstail select: the hyperparameters that are best on validation."""

from pathlib import Path

import msgspec
from rich.console import Console

from crosstail.cli._checks import require_output
from crosstail.cli._parameters import Json, Sweep


def select(folder: Sweep, /, *, out: Path | None = None, select_on: str | None = None, as_json: Json = False) -> None:
    """Choose each method's best trial on validation and write its hyperparameters for fit --hparams.

    Example: `crosstail select sweep --out best.json`

    Args:
        select_on: Validation metric for choosing the best trial; default: the sweep's. Steps stay as the sweep selected
            them.
        out: JSON file to write; default: selected.json in the sweep's folder.
    """
    from crosstail.reports.compare.sweep_tables import selection_notes, selection_table
    from crosstail.reports.document import terminal
    from crosstail.workflows.select import select

    if out is not None and out != folder / "selected.json":
        require_output(out, (), ".json")
    found = select(folder, out=out, select_on=select_on)
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
