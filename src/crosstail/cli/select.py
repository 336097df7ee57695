"""crosstail select: the hyperparameters that are best on validation."""

import json
from dataclasses import asdict
from pathlib import Path

from rich.console import Console

from crosstail.cli._parameters import Json, Sweep
from crosstail.cli._sweeps import choices_notes, sweep_table


def select(folder: Sweep, /, *, out: Path | None = None, as_json: Json = False) -> None:
    """Choose each method's best trial on validation and write its hyperparameters for fit --hparams.

    Example: `crosstail select sweep --out best.json`

    Args:
        out: JSON file to write; default: selected.json in the sweep's folder.
    """
    from crosstail.sweep.files import write_object
    from crosstail.sweep.select import as_file, choices, table
    from crosstail.sweep.store import Store

    store = Store.existing(folder)
    results = store.results()
    chosen = choices(store, results)
    if all(choice.trial is None for choice in chosen):
        raise ValueError(f"{folder} has no finished trial to select from; crosstail status {folder} shows its progress")
    place = out or folder / "selected.json"
    write_object(place, as_file(chosen))
    if as_json:
        print(json.dumps([{k: v for k, v in asdict(choice).items() if k not in ("plan", "keys")} for choice in chosen]))
        return
    console = Console(highlight=False)
    console.print(sweep_table(chosen, table(chosen, results)))
    for choice in chosen:
        words = ", ".join(f"{name} {value}" for name, value in choice.hparams.items())
        if choice.trial is not None:
            console.print(f"{choice.entry}: {words or 'defaults'}", markup=False)
    for note in choices_notes(chosen):
        console.print(note, markup=False)
    console.print(f"written to {place}", markup=False)
