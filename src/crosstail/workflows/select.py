"""Choose each method's best trial on validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosstail.storage import write_json
from crosstail.sweeps.plan import Hparams
from crosstail.sweeps.select import SeedSummary, SelectedTrial, as_file, choices, table
from crosstail.sweeps.store import Store

SELECTED = "selected.json"


@dataclass(frozen=True)
class Selected:
    """The best trials of a sweep, and the file that contains their hyperparameters."""

    file: Path
    chosen: Sequence[SelectedTrial]
    rows: Sequence[SeedSummary]
    """The test accuracy of every method over its seeds."""

    @property
    def hparams(self) -> dict[str, Hparams]:
        """By method, with dg also by unseen domain and seed: the content of the file."""
        return as_file(self.chosen)

    @property
    def complete(self) -> bool:
        return all(row.seeds == row.planned for row in self.rows)

    def to_json(self) -> list[dict[str, Any]]:
        """The choices, without the keys of runs."""
        found = []
        for choice in self.chosen:
            shown = {name: value for name, value in vars(choice).items() if name not in ("plan", "keys")}
            shared = choice.plan.shared
            found.append(shown | ({"unseen": shared.unseen, "seed": shared.seed} if shared.unseen_domains else {}))
        return found


def select(folder: Path, *, out: Path | None = None, select_on: str | None = None) -> Selected:
    """Choose each method's best trial of a sweep on validation, and write its hyperparameters for `fit`.

    Args:
        folder: Folder of a sweep.
        out: JSON file to write; default: selected.json in the sweep's folder.
        select_on: Validation metric for choosing the best trial; default: the sweep's. Steps stay as the sweep selected
            them.
    """
    store = Store.existing(folder)
    results = store.results()
    chosen = choices(store, results, select_on=select_on)
    if all(choice.trial is None for choice in chosen):
        raise ValueError(f"{folder} has no finished trial to select from; crosstail status {folder} shows its progress")
    file = out or folder / SELECTED
    write_json(file, as_file(chosen))
    return Selected(file, chosen, table(chosen, results))
