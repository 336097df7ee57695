"""Choose each method's best trial on validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosstail.storage import write_json
from crosstail.sweeps import rules
from crosstail.sweeps.plan import Hparams, Plan
from crosstail.sweeps.rules import Rule
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


def choose(
    store: Store, plan: Plan | None = None, select_on: str | None = None, rule: Rule | None = None
) -> tuple[list[SelectedTrial], list[SeedSummary]]:
    """The best trials of a plan, or of the whole sweep, and the accuracies of the methods."""
    results = store.results()
    chosen = choices(store, results, plan, select_on, rule)
    if rule:
        from crosstail.sweeps.by_rule import tested  # here, because it imports torch

        results = tested(rule, store.path / "runs", results, chosen)
    return chosen, table(chosen, results)


def selected_name(rule: Rule | None) -> str:
    """Name of the file in a sweep's folder; what a rule selects is no default for `fit`."""
    return f"selected-{rule.name}.json" if rule else SELECTED


def select(folder: Path, *, out: Path | None = None, select_on: str | None = None, rule: str | None = None) -> Selected:
    """Choose each method's best trial of a sweep on validation, and write its hyperparameters for `fit`.

    Args:
        folder: Folder of a sweep.
        out: JSON file to write; default: selected.json in the sweep's folder, or selected-RULE.json.
        select_on: Validation metric for choosing the best trial; default: the sweep's. Steps stay as the sweep selected
            them.
        rule: Select trial and step together, as other benchmarks do: worst_group or no_attribute; with dg also
            leave_one_domain_out, and oracle, for comparison only.
    """
    if rule and select_on:
        raise ValueError("--rule and --select-on are two ways to select: use one")
    store, by = Store.existing(folder), rules.find(rule) if rule else None
    chosen, rows = choose(store, select_on=select_on, rule=by)
    if all(choice.trial is None for choice in chosen):
        if by and by.left_out:
            raise ValueError(
                f"{folder} lacks runs that leave out one more domain: give its sweep command with --rule {rule}"
            )
        raise ValueError(f"{folder} has no finished trial to select from; crosstail status {folder} shows its progress")
    file = out or folder / selected_name(by)
    write_json(file, as_file(chosen))
    return Selected(file, chosen, rows)
