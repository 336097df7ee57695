"""crosstail select: the hyperparameters that are best on validation."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from crosstail.cli._sweeps import choices_notes, sweep_table


def select(
    folder: Annotated[Path, typer.Argument(help="The folder of a sweep.")],
    out: Annotated[
        Path | None, typer.Option(help="Where to write them; by default selected.json in the folder.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Choose each algorithm's best trial on validation, and write its hyperparameters for fit --hparams.

    Example: [b]crosstail select sweep --out best.json[/]
    """
    from crosstail.sweep.files import write_object
    from crosstail.sweep.select import as_file, choices, table
    from crosstail.sweep.store import Store

    store = Store.existing(folder)
    results = store.results()
    chosen = choices(store, results)
    if all(choice.trial is None for choice in chosen):
        raise ValueError(
            f"{folder} has no finished trial to select from; crosstail status {folder} shows how far it is"
        )
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
