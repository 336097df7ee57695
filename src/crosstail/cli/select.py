"""crosstail select: the hyperparameters that are best on validation."""

from pathlib import Path

import msgspec
from rich.console import Console

from crosstail.cli._checks import require_output
from crosstail.cli._parameters import Json, Sweep
from crosstail.criterion import Criterion


def select(
    folder: Sweep, /, *, out: Path | None = None, select_on: Criterion | None = None, as_json: Json = False
) -> None:
    """Choose each method's best trial on validation and write its hyperparameters for fit --hparams.

    Example: `crosstail select sweep --out best.json`

    Args:
        select_on: Validation metric for choosing the best trial; default: the sweep's. Steps stay as the sweep selected
            them.
        out: JSON file to write; default: selected.json in the sweep's folder.
    """
    from crosstail.reports.compare.sweep_tables import selection_notes, selection_table
    from crosstail.reports.document import terminal
    from crosstail.storage import write_json
    from crosstail.sweeps.select import as_file, choices, table
    from crosstail.sweeps.store import Store

    if out is not None and out != folder / "selected.json":
        require_output(out, (), ".json")
    store = Store.existing(folder)
    results = store.results()
    chosen = choices(store, results, select_on=select_on)
    if all(choice.trial is None for choice in chosen):
        raise ValueError(f"{folder} has no finished trial to select from; crosstail status {folder} shows its progress")
    place = out or folder / "selected.json"
    write_json(place, as_file(chosen))
    if as_json:
        shown = [{k: v for k, v in vars(choice).items() if k not in ("plan", "keys")} for choice in chosen]
        for one, choice in zip(shown, chosen, strict=True):
            if choice.plan.shared.unseen_domains:
                one |= {"unseen": choice.plan.shared.unseen, "seed": choice.plan.shared.seed}
        print(msgspec.json.encode(shown).decode())
        return
    console = Console(highlight=False, markup=False)
    terminal.show([selection_table(table(chosen, results))], console)
    for method, hparams in as_file(chosen).items():
        words = ", ".join(f"{name} {value}" for name, value in hparams.items())
        console.print(f"{method}: {words or 'defaults'}")
    for note in selection_notes(chosen):
        console.print(note)
    console.print(f"written to {place}")
